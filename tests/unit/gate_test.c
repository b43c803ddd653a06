/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate_test.c - gates in one process, which copies to itself: who may do what,
 * where bytes land, what a corrupt area does. Several processes:
 * gate_flood_test.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/gate.h"
#include "link/gate_area.h"

#define LEN 4096u
#define KEY 0x1234u
#define IOVA 0x1000000000ull

static struct {
	struct gate_area *area;
	const struct gate_area *seen;
	struct gate_table *table;
	struct gate_peer peer;
	uint8_t mem[LEN + 64], local[LEN];
	struct iovec iov[GATE_LOCAL_MAX];
} g;

static const struct gid ours = { .raw = { 1, 2, 3, [15] = 4 } };
static const struct gid theirs = { .raw = { 5, 6, 7, [15] = 8 } };

static struct gate_qp_attr qp_attr(void)
{
	return (struct gate_qp_attr){ .qpn = 0x050007,
				      .pd = 9,
				      .access = GATE_READ | GATE_WRITE,
				      .peer_qpn = 0x060008,
				      .pkey = 0xffff,
				      .own = theirs,
				      .peer = ours };
}

static struct gate_mr_attr mr_attr(void)
{
	return (struct gate_mr_attr){ .key = KEY,
				      .pd = 9,
				      .access = GATE_READ | GATE_WRITE,
				      .va = (uintptr_t)g.mem,
				      .iova = IOVA,
				      .len_bytes = LEN };
}

static struct gate_request request(uint32_t access, uint32_t at, uint32_t n)
{
	g.iov[0] = (struct iovec){ g.local, n };
	return (struct gate_request){ .access = access,
				      .qpn = 0x060008,
				      .peer_qpn = 0x050007,
				      .pkey = 0xffff,
				      .own = ours,
				      .peer = theirs,
				      .rkey = KEY,
				      .remote_addr = IOVA + at,
				      .len_bytes = n,
				      .n = n,
				      .local = g.iov,
				      .num_local = 1 };
}

static enum gate_verdict go(const struct gate_request *r)
{
	enum gate_verdict v = gate_copy(g.area, 0, &g.peer, r);

	assert_true(atomic_load(&g.area->announcements[0].word) == 0);
	return v;
}

static int setup(void **state)
{
	const struct gate_qp_attr qa = qp_attr();
	const struct gate_mr_attr ma = mr_attr();
	int fd = memfd_create("gates", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && ftruncate(fd, GATE_AREA_BYTES) == 0);
	g.area = mmap(NULL, GATE_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	assert_true(g.area != MAP_FAILED);
	g.seen = gate_map(fd, 0);
	assert_non_null(g.seen);
	close(fd);
	assert_int_equal(gate_peer_init(&g.peer, g.seen, getpid()), -EPROTO);
	g.table = gate_table_new(g.area, 77);
	assert_non_null(g.table);
	assert_int_equal(gate_vouch(g.table), 0);
	assert_int_equal(gate_peer_init(&g.peer, g.seen, getpid()), 0);
	gate_qp_open(g.table, &qa);
	assert_int_equal(gate_mr_open(g.table, &ma), 0);
	for (unsigned i = 0; i < LEN; i++) {
		g.local[i] = (uint8_t)(i * 7 + 1);
		g.mem[i] = (uint8_t)(i * 3 + 2);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)pthread_mutex_unlock(&g.area->owner.mutex);
	gate_table_free(g.table);
	gate_unmap(g.seen);
	munmap(g.area, GATE_AREA_BYTES);
	return 0;
}

/* A system that forbids such copies has no one-sided path at all. */
static void need_copies(void)
{
	struct iovec asked = g.iov[0];
	struct gate_request r = request(GATE_READ, 0, 1);
	enum gate_verdict v = gate_copy(g.area, 0, &g.peer, &r);

	g.iov[0] = asked;
	if (v == GATE_REFUSED) {
		print_message("process_vm_readv is refused here\n");
		skip();
	}
}

static void write_then_read(void **state)
{
	struct gate_request r = request(GATE_WRITE, 100, 1000);

	(void)state;
	need_copies();
	assert_int_equal(go(&r), GATE_DONE);
	assert_memory_equal(g.mem + 100, g.local, 1000);
	assert_int_equal(g.mem[99], (uint8_t)(99 * 3 + 2));
	assert_int_equal(g.mem[1100], (uint8_t)(1100 * 3 + 2));
	memset(g.local, 0, LEN);
	r = request(GATE_READ, 0, LEN);
	assert_int_equal(go(&r), GATE_DONE);
	assert_memory_equal(g.mem, g.local, LEN);
}

/* Every length and alignment of the end, cut in every way: the last bytes go
 * apart and still land where they belong. */
static void tails(void **state)
{
	(void)state;
	need_copies();
	for (uint32_t at = 0; at < 9; at++)
		for (uint32_t n = 1; n < 20; n++)
			for (uint32_t cut = 0; cut < n; cut++) {
				struct gate_request r =
					request(GATE_WRITE, at, n);

				g.iov[0].iov_len = cut;
				g.iov[1] = (struct iovec){ g.local + cut, 0 };
				g.iov[2] = (struct iovec){ g.local + cut,
							   n - cut };
				r.num_local = 3;
				memset(g.mem, 0xaa, 64);
				assert_int_equal(go(&r), GATE_DONE);
				assert_memory_equal(g.mem + at, g.local, n);
				assert_true(at == 0 || g.mem[at - 1] == 0xaa);
				assert_int_equal(g.mem[at + n], 0xaa);
			}
}

static void pieces(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, LEN);

	(void)state;
	need_copies();
	for (r.off = 0; r.off < LEN; r.off += r.n) {
		r.n = LEN - r.off < 1000 ? LEN - r.off : 1000;
		g.iov[0] = (struct iovec){ g.local + r.off, r.n };
		assert_int_equal(go(&r), GATE_DONE);
		if (r.off + r.n < LEN)
			assert_int_equal(g.mem[LEN - 1],
					 (uint8_t)((LEN - 1) * 3 + 2));
	}
	assert_memory_equal(g.mem, g.local, LEN);
}

static void qp_checks(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 8);
	struct gate_qp_attr a = qp_attr();

	(void)state;
	r.peer_qpn++;
	assert_int_equal(go(&r), GATE_NO_QP);
	r.peer_qpn = 0x060007; /* same place in the table */
	assert_int_equal(go(&r), GATE_NO_QP);
	r = request(GATE_WRITE, 0, 8);
	r.qpn++;
	assert_int_equal(go(&r), GATE_NO_QP);
	r = request(GATE_WRITE, 0, 8);
	r.pkey--;
	assert_int_equal(go(&r), GATE_NO_QP);
	r = request(GATE_WRITE, 0, 8);
	r.own.raw[0]++;
	assert_int_equal(go(&r), GATE_NO_QP);
	r = request(GATE_WRITE, 0, 8);
	r.peer.raw[15]++;
	assert_int_equal(go(&r), GATE_NO_QP);
	a.access = GATE_READ;
	gate_qp_open(g.table, &a);
	r = request(GATE_WRITE, 0, 8);
	assert_int_equal(go(&r), GATE_NO_QP);
	(void)gate_qp_close(g.table, a.qpn);
	r = request(GATE_READ, 0, 8);
	assert_int_equal(go(&r), GATE_NO_QP);
}

static void mr_checks(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 8);
	struct gate_qp_attr a = qp_attr();

	(void)state;
	need_copies();
	r.rkey++;
	assert_int_equal(go(&r), GATE_NO_MR);
	r = request(GATE_WRITE, 0, 8);
	r.remote_addr = IOVA - 1;
	assert_int_equal(go(&r), GATE_NO_MR);
	r.remote_addr = IOVA + LEN - 7;
	assert_int_equal(go(&r), GATE_NO_MR);
	r.remote_addr = IOVA + LEN - 8;
	assert_int_equal(go(&r), GATE_DONE);
	r.remote_addr = UINT64_MAX - 3; /* a sum would wrap */
	assert_int_equal(go(&r), GATE_NO_MR);
	/* The bounds are the message's, not the piece's. */
	r = request(GATE_WRITE, 8, 8);
	r.len_bytes = LEN;
	assert_int_equal(go(&r), GATE_NO_MR);
	a.pd++;
	gate_qp_open(g.table, &a);
	r = request(GATE_WRITE, 0, 8);
	assert_int_equal(go(&r), GATE_NO_MR);
}

static void mr_access(void **state)
{
	struct gate_mr_attr a = mr_attr();
	struct gate_request r = request(GATE_WRITE, 0, 8);

	(void)state;
	need_copies();
	gate_wait(g.table, gate_mr_close(g.table, KEY), NULL, 0);
	a.access = GATE_READ;
	assert_int_equal(gate_mr_open(g.table, &a), 0);
	assert_int_equal(go(&r), GATE_NO_MR);
	r.access = GATE_READ;
	assert_int_equal(go(&r), GATE_DONE);
}

/* A message of no bytes needs the QP and no key. */
static void zero_length(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 0);

	(void)state;
	r.rkey = 0xdead;
	r.num_local = 0;
	assert_int_equal(go(&r), GATE_DONE);
	(void)gate_qp_close(g.table, r.peer_qpn);
	assert_int_equal(go(&r), GATE_NO_QP);
}

static void faults(void **state)
{
	uint8_t *page = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gate_request r = request(GATE_WRITE, 0, LEN);
	struct gate_mr_attr a = mr_attr();

	(void)state;
	need_copies();
	g.iov[0].iov_base = page;
	assert_int_equal(go(&r), GATE_DONE);
	munmap(page, LEN);
	assert_int_equal(go(&r), GATE_FAULT); /* ours */
	gate_wait(g.table, gate_mr_close(g.table, KEY), NULL, 0);
	a.va = (uintptr_t)page;
	assert_int_equal(gate_mr_open(g.table, &a), 0);
	r = request(GATE_WRITE, 0, LEN);
	assert_int_equal(go(&r), GATE_FAULT); /* the peer's */
	r.n = r.len_bytes = 1;
	g.iov[0].iov_len = 1;
	assert_int_equal(go(&r), GATE_FAULT);
}

static void stop_word(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 100);

	(void)state;
	need_copies();
	atomic_store(&g.area->stop.len, UINT64_MAX);
	assert_int_equal(go(&r), GATE_SHUT);
	assert_int_equal(g.mem[0], 2);
	atomic_store(&g.area->stop.len, 0);
	assert_int_equal(go(&r), GATE_DONE);
}

static void nobody_there(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 8);

	(void)state;
	need_copies();
	g.peer.pid = 0x3fffffff; /* above any pid_max */
	assert_int_equal(go(&r), GATE_GONE);
}

/* Keys whose places are taken are refused, and come in when one is free; a
 * place is free only after the wait. */
static void places(void **state)
{
	struct gate_mr_attr a = mr_attr();
	struct gate_request r = request(GATE_READ, 0, 8);
	struct gate_closed c;

	(void)state;
	need_copies();
	for (uint32_t i = 1; i < GATE_MR_PROBES; i++) {
		a.key = KEY + i * (GATE_MRS << 8);
		assert_int_equal(gate_mr_open(g.table, &a), 0);
		r.rkey = a.key;
		assert_int_equal(go(&r), GATE_DONE);
	}
	a.key += GATE_MRS << 8;
	assert_int_equal(gate_mr_open(g.table, &a), -ENOSPC);
	r.rkey = a.key;
	assert_int_equal(go(&r), GATE_NO_MR);
	c = gate_mr_close(g.table, KEY);
	assert_int_equal(c.kind, GATE_MR);
	assert_int_equal(gate_mr_close(g.table, KEY).kind, GATE_NONE);
	assert_int_equal(gate_mr_open(g.table, &a), -ENOSPC);
	gate_wait(g.table, c, NULL, 0);
	assert_int_equal(gate_mr_open(g.table, &a), 0);
	assert_int_equal(go(&r), GATE_DONE);
}

/* Bytes of all kinds in a peer's area: copies fail, or go to where the area
 * says in the peer's own memory; nothing else happens. */
static void corrupt_area(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 64);
	unsigned done = 0;
	uint8_t *p;

	(void)state;
	need_copies();
	srand(1);
	for (int i = 0; i < 20000; i++) {
		struct gate_qp *q = &g.area->qps[r.peer_qpn % GATE_QPS];
		struct gate_mr *m = &g.area->mrs[gate_mr_place(KEY, 0)];

		p = (uint8_t *)(i & 1 ? (void *)q : (void *)m);
		p[rand() % 56] ^= (uint8_t)(1 << rand() % 8);
		atomic_store(&m->va, (uintptr_t)g.mem);
		done += go(&r) == GATE_DONE;
		if (i % 3 == 0) {
			const struct gate_qp_attr qa = qp_attr();
			const struct gate_mr_attr ma = mr_attr();

			gate_wait(g.table, gate_mr_close(g.table, KEY), NULL,
				  0);
			memset((void *)m, 0, sizeof(*m));
			assert_int_equal(gate_mr_open(g.table, &ma), 0);
			gate_qp_open(g.table, &qa);
		}
	}
	assert_true(done > 0);
}

static void shut(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 8);
	struct gate_mr_attr a = mr_attr();

	(void)state;
	gate_table_shut(g.table);
	assert_int_equal(go(&r), GATE_NO_MR);
	a.key += 0x100;
	assert_int_equal(gate_mr_open(g.table, &a), -ENOSPC);
}

static void *vouch_and_end(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)gate_vouch(g.table);
}

/* The thread that vouches ends: nobody copies any more. */
static void nobody_vouches(void **state)
{
	struct gate_request r = request(GATE_WRITE, 0, 8);
	pthread_t t;
	void *err;

	(void)state;
	need_copies();
	assert_int_equal(pthread_mutex_unlock(&g.area->owner.mutex), 0);
	assert_int_equal(go(&r), GATE_NO_OWNER);
	assert_int_equal(pthread_create(&t, NULL, vouch_and_end, NULL), 0);
	assert_int_equal(pthread_join(t, &err), 0);
	assert_null(err);
	assert_int_equal(go(&r), GATE_NO_OWNER);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(write_then_read), T(tails),	  T(pieces),
		T(qp_checks),	    T(mr_checks), T(mr_access),
		T(zero_length),	    T(faults),	  T(stop_word),
		T(nobody_there),    T(places),	  T(corrupt_area),
		T(nobody_vouches),  T(shut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
