/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * guest_agent.c - runs commands in the guest. A TCP connection is one command:
 * the host sends a shell command line that ends in a NUL; its output (both
 * streams) comes back as it is, then a NUL and the exit status in decimal. When
 * the host closes the connection earlier, the command's process group is
 * killed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_COMMAND 65536

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Reads up to the NUL; false when the host left before. */
static int read_command(int sock, char *cmd)
{
	size_t n = 0;

	while (n < MAX_COMMAND) {
		ssize_t r = recv(sock, cmd + n, MAX_COMMAND - n, 0);

		if (r <= 0)
			return 0;
		n += (size_t)r;
		if (cmd[n - 1] == '\0')
			return 1;
	}
	return 0;
}

static pid_t start_command(int sock, const char *cmd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	setsid();
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(sock, 1);
	dup2(sock, 2);
	close(sock);
	execl("/bin/dash", "sh", "-c", cmd, NULL);
	_exit(127);
}

/* Waits for the command's end; the host's leaving kills it. */
static int wait_command(int sock, pid_t pid)
{
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (poll(&p, 1, 10) > 0) {
			kill(-pid, SIGKILL);
			p.fd = -1;
		}
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return 128 + WTERMSIG(status);
}

static void serve(int sock)
{
	static char cmd[MAX_COMMAND];
	pid_t pid;

	if (!read_command(sock, cmd))
		return;
	pid = start_command(sock, cmd);
	if (pid < 0)
		die("fork");
	dprintf(sock, "%c%d", '\0', wait_command(sock, pid));
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (argc != 2 || s < 0)
		die("guest_agent");
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 64))
		die("listen");
	/* Whoever started this may go on once there is somebody listening. */
	if (fork() != 0)
		return 0;
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept4(s, NULL, NULL, SOCK_CLOEXEC);

		if (c >= 0 && fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			serve(c);
			_exit(0);
		}
		close(c);
	}
}
