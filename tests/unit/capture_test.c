/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * capture_test.c - what capture writes, libpcap reads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "rt/capture.h"
#include "wire/pkt.h"

static char path[64];

static int new_path(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/capture_test.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return unlink(path);
}

static int drop_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct rocev2_flow flow4(void)
{
	return (struct rocev2_flow){ .src = gid_from_v4(0x7f000001),
				     .dst = gid_from_v4(0x0a010203),
				     .sport = 0xc123,
				     .tos = 2,
				     .ttl = 64,
				     .ip_id = 77,
				     .df = true };
}

static struct rocev2_flow flow6(void)
{
	return (struct rocev2_flow){ .src = { .raw = { 0xfd, [15] = 1 } },
				     .dst = { .raw = { 0xfd, [15] = 2 } },
				     .sport = 0xc124,
				     .ttl = 64,
				     .flow_label = 0x12345 };
}

/* A packet of len bytes with ICRC. */
static void make_pkt(uint8_t *p, const struct rocev2_flow *f, size_t len,
		     uint8_t seed)
{
	for (size_t i = 0; i < len - ICRC_BYTES; i++)
		p[i] = (uint8_t)(seed + i);
	rocev2_seal(f, p, len - ICRC_BYTES);
}

static pcap_t *open_capture(void)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, err);

	assert_non_null(p);
	assert_int_equal(pcap_datalink(p), DLT_EN10MB);
	return p;
}

/* Reads the next record and checks that it is this packet. */
static void expect_frame(pcap_t *p, const struct rocev2_flow *f,
			 const uint8_t *pkt, size_t len)
{
	struct pcap_pkthdr *h;
	const uint8_t *b;
	struct rocev2_flow got;
	struct eth eth;
	size_t n, got_len;

	assert_int_equal(pcap_next_ex(p, &h, &b), 1);
	assert_int_equal(h->caplen, h->len);
	assert_true(labs((long)(h->ts.tv_sec - time(NULL))) < 60);
	n = eth_decode(&eth, b, h->caplen);
	assert_int_equal(n, ETH_BYTES);
	assert_int_equal(eth.src[0], 2);
	assert_memory_not_equal(eth.src, eth.dst, 6);
	n += rocev2_decode_headers(&got, b + n, h->caplen - n, &got_len);
	assert_true(gid_eq(&got.src, &f->src));
	assert_true(gid_eq(&got.dst, &f->dst));
	assert_int_equal(got.sport, f->sport);
	assert_int_equal(got.tos, f->tos);
	assert_int_equal(got_len, len);
	assert_int_equal(h->caplen, n + len);
	assert_memory_equal(b + n, pkt, len);
	assert_true(rocev2_icrc_ok(&got, b + n, len));
}

static void expect_end(pcap_t *p)
{
	struct pcap_pkthdr *h;
	const uint8_t *b;

	assert_int_equal(pcap_next_ex(p, &h, &b), PCAP_ERROR_BREAK);
	pcap_close(p);
}

static void test_frames(void **state)
{
	static uint8_t small[64], big[PKT_MAX + ICRC_BYTES];
	struct rocev2_flow f4 = flow4(), f6 = flow6();
	struct capture *c;
	pcap_t *p;

	(void)state;
	make_pkt(small, &f4, sizeof(small), 1);
	make_pkt(big, &f6, sizeof(big), 2);
	assert_int_equal(capture_open(path, &c), 0);
	capture_frame(c, true, &f4, small, sizeof(small));
	capture_frame(c, false, &f6, big, sizeof(big));
	capture_flush(c);
	p = open_capture(); /* complete before the close */
	expect_frame(p, &f4, small, sizeof(small));
	expect_frame(p, &f6, big, sizeof(big));
	expect_end(p);
	capture_close(c);
	capture_close(NULL);
	capture_flush(NULL);
}

/* More than the buffer holds, no flush by the caller. */
static void test_overfull_buffer(void **state)
{
	static uint8_t big[PKT_MAX + ICRC_BYTES];
	struct rocev2_flow f = flow4();
	struct capture *c;
	pcap_t *p;

	(void)state;
	assert_int_equal(capture_open(path, &c), 0);
	for (int i = 0; i < 500; i++) {
		make_pkt(big, &f, sizeof(big), (uint8_t)i);
		errno = 4711;
		capture_frame(c, true, &f, big, sizeof(big));
		assert_int_equal(errno, 4711);
	}
	assert_int_equal(capture_lost(c), 0);
	capture_close(c);
	p = open_capture();
	for (int i = 0; i < 500; i++) {
		make_pkt(big, &f, sizeof(big), (uint8_t)i);
		expect_frame(p, &f, big, sizeof(big));
	}
	expect_end(p);
}

/* Several processes open and append at once: one header, whole records. */
static void append_in_child(int records)
{
	struct rocev2_flow f = flow4();
	uint8_t pkt[256];
	struct capture *c;

	make_pkt(pkt, &f, sizeof(pkt), 5);
	if (capture_open(path, &c) != 0)
		_exit(1);
	for (int i = 0; i < records; i++) {
		capture_frame(c, true, &f, pkt, sizeof(pkt));
		if (i % 3 == 0)
			capture_flush(c);
	}
	capture_close(c);
	_exit(0);
}

static void test_processes(void **state)
{
	struct rocev2_flow f = flow4();
	uint8_t pkt[256];
	pcap_t *p;
	int status;

	(void)state;
	make_pkt(pkt, &f, sizeof(pkt), 5);
	fflush(NULL);
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			append_in_child(300);
	for (int i = 0; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	p = open_capture();
	for (int i = 0; i < 4 * 300; i++)
		expect_frame(p, &f, pkt, sizeof(pkt));
	expect_end(p);
}

/* A descriptor that the program closed and used again is left alone. */
static void test_closed_under_us(void **state)
{
	struct rocev2_flow f = flow4();
	uint8_t pkt[64];
	struct capture *c;
	int fds[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char b;

	(void)state;
	assert_true(fd >= 0);
	close(fd); /* the number that capture_open gets */
	make_pkt(pkt, &f, sizeof(pkt), 5);
	assert_int_equal(capture_open(path, &c), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(dup2(fds[1], fd), fd);
	capture_frame(c, true, &f, pkt, sizeof(pkt));
	capture_flush(c);
	assert_int_equal(capture_lost(c), 1);
	assert_int_equal(read(fds[0], &b, 1), -1);
	capture_close(c);
	assert_true(fcntl(fd, F_GETFD) >= 0); /* not ours to close */
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

static void test_errors(void **state)
{
	struct capture *c = NULL;

	(void)state;
	assert_int_equal(capture_open("/nonexistent/x.pcap", &c), -ENOENT);
	assert_int_equal(capture_open("/tmp", &c), -EISDIR);
	assert_int_equal(capture_open("/dev/full", &c), -ENOSPC);
	assert_null(c);
}

#define WITH_PATH(fn) cmocka_unit_test_setup_teardown(fn, new_path, drop_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PATH(test_frames),	       WITH_PATH(test_overfull_buffer),
		WITH_PATH(test_processes),     WITH_PATH(test_closed_under_us),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
