/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * refuse.c - becomes a program to which the system refuses something:
 *
 *   refuse [ERRNO] WHAT... -- PROGRAM [ARG...]
 *
 * ERRNO is EPERM (the default) or ENOSYS, WHAT a name of the table below. As
 * the filters of containers do. Status 77: there is no seccomp here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANY 0xffffffffu
#define UDP_SEGMENT_OPT 103
#define UDP_GRO_OPT 104

/* A system call, and values of its arguments 0, 1 and 2 (ANY: all). */
static const struct rule {
	const char *name;
	unsigned nr, arg[3];
} rules[] = {
	{ "process_vm_readv", SYS_process_vm_readv, { ANY, ANY, ANY } },
	{ "process_vm_writev", SYS_process_vm_writev, { ANY, ANY, ANY } },
	{ "memfd_create", SYS_memfd_create, { ANY, ANY, ANY } },
	{ "UDP_SEGMENT",
	  SYS_setsockopt,
	  { ANY, IPPROTO_UDP, UDP_SEGMENT_OPT } },
	{ "UDP_GRO", SYS_setsockopt, { ANY, IPPROTO_UDP, UDP_GRO_OPT } },
	{ "SO_NO_CHECK", SYS_setsockopt, { ANY, SOL_SOCKET, SO_NO_CHECK } },
	{ "SO_ATTACH_REUSEPORT_CBPF",
	  SYS_setsockopt,
	  { ANY, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF } },
	{ "AF_INET6", SYS_socket, { AF_INET6, ANY, ANY } },
	{ "ioctl", SYS_ioctl, { ANY, ANY, ANY } },
	{ "timerfd_create", SYS_timerfd_create, { ANY, ANY, ANY } },
};

static void put(struct sock_filter *code, unsigned *n, struct sock_filter f)
{
	code[(*n)++] = f;
}

/* The low half of an argument, as all of these machines store it first. */
static unsigned arg_at(unsigned i)
{
	return (unsigned)(offsetof(struct seccomp_data, args) + 8 * i);
}

/* Refuses what the rule matches, and falls through otherwise. */
static void put_rule(struct sock_filter *code, unsigned *n,
		     const struct rule *r, unsigned error)
{
	unsigned left = 1; /* instructions after this comparison */

	for (int i = 0; i < 3; i++)
		left += r->arg[i] == ANY ? 0 : 2;
	put(code, n,
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					 offsetof(struct seccomp_data, nr)));
	put(code, n,
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->nr, 0,
					 (__u8)left));
	for (unsigned i = 0; i < 3; i++) {
		if (r->arg[i] == ANY)
			continue;
		left -= 2;
		put(code, n,
		    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 arg_at(i)));
		put(code, n,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						 r->arg[i], 0, (__u8)left));
	}
	put(code, n,
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					 SECCOMP_RET_ERRNO | error));
}

static const struct rule *find(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	return NULL;
}

static int install(struct sock_filter *code, unsigned n)
{
	struct sock_fprog prog = { (unsigned short)n, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		return 0;
	perror("refuse: seccomp");
	return 77;
}

int main(int argc, char **argv)
{
	struct sock_filter code[256];
	unsigned n = 0, error = EPERM;
	int i, rc;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct rule *r = find(argv[i]);

		if (strcmp(argv[i], "ENOSYS") == 0)
			error = ENOSYS;
		else if (r && n < 240)
			put_rule(code, &n, r, error);
		else
			return fprintf(stderr, "refuse: %s?\n", argv[i]), 2;
	}
	if (i + 1 >= argc)
		return 2;
	put(code, &n,
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	rc = install(code, n);
	if (rc)
		return rc;
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}
