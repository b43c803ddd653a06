/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring_test.c - records arrive whole and in order over many laps, back-pressure
 * holds, and whatever a hostile sender writes is refused or harmless.
 */
#include "link/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define SIZE (512u << 10)

struct pair {
	struct ring_shm *shm;
	struct ring_back *back;
	struct ring_tx tx;
	struct ring_rx rx;
};

static void *zeroed(size_t n)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, 64, n), 0);
	return memset(p, 0, n);
}

static struct pair pair_new(void)
{
	struct pair p = { .shm = zeroed(ring_shm_bytes(SIZE)),
			  .back = zeroed(sizeof(*p.back)) };

	ring_rx_init(&p.rx, p.shm, SIZE, p.back);
	ring_tx_init(&p.tx, p.shm, SIZE, p.back);
	return p;
}

static void pair_free(struct pair *p)
{
	free(p->shm);
	free(p->back);
}

static bool put(struct pair *p, uint32_t n, uint8_t fill)
{
	struct ring_rec *r;

	if (!ring_tx_room(&p->tx))
		return false;
	r = ring_tx_reserve(&p->tx, n);
	*r = (struct ring_rec){ .kind = RING_FRAME,
				.pkts = 1,
				.pkt_bytes = (uint16_t)n };
	memset((uint8_t *)r + RING_UNIT, fill, n);
	ring_tx_commit(&p->tx, r, n);
	return true;
}

static void in_order(void **state)
{
	struct pair p = pair_new();
	struct ring_item it;
	uint32_t sent = 0, got = 0;

	(void)state;
	while (got < 20000) {
		while (sent < got + 50 &&
		       put(&p, 1 + sent * 37 % PKT_MAX, (uint8_t)sent))
			sent++;
		assert_true(ring_tx_publish(&p.tx));
		while (ring_rx_next(&p.rx, &it) == RING_OK) {
			uint32_t n = 1 + got * 37 % PKT_MAX;

			assert_int_equal(it.rec.pkt_bytes, n);
			assert_int_equal(it.pkt[0], (uint8_t)got);
			assert_int_equal(it.pkt[n - 1], (uint8_t)got);
			got++;
		}
		assert_int_equal(got, sent);
		(void)ring_rx_release(&p.rx);
	}
	pair_free(&p);
}

/* Full is full until something is given back; the waiter is answered once. */
static void back_pressure(void **state)
{
	struct pair p = pair_new();
	struct ring_item it;
	unsigned n = 0;

	(void)state;
	while (put(&p, 4000, 0))
		n++;
	assert_true(n > 50);
	(void)ring_tx_publish(&p.tx);
	assert_false(ring_tx_wait(&p.tx, 1));
	while (n--)
		assert_int_equal(ring_rx_next(&p.rx, &it), RING_OK);
	assert_int_equal(ring_rx_next(&p.rx, &it), RING_EMPTY);
	assert_false(ring_tx_room(&p.tx));
	assert_true(ring_rx_release(&p.rx));
	assert_false(ring_rx_release(&p.rx));
	assert_true(ring_tx_room(&p.tx));
	pair_free(&p);
}

/* Garbage in the ring and in tail: reads stay inside, lengths are checked. */
static void hostile_sender(void **state)
{
	struct pair p = pair_new();
	struct ring_item it;
	struct prng g;
	unsigned ok = 0, broken = 0;

	(void)state;
	prng_init(&g, 7);
	for (unsigned i = 0; i < 20000; i++) {
		struct ring_rec *r = (void *)(p.shm->data);
		enum ring_verdict v;

		for (unsigned k = 0; k < 256; k += 4) {
			uint32_t w = prng_u32(&g);

			memcpy(p.shm->data + k, &w, 4);
		}
		r->bytes = prng_below(&g, 4)
				   ? RING_UNIT * (1 + prng_below(&g, 4))
				   : prng_u32(&g);
		r->kind = (uint8_t)prng_below(&g, 6);
		r->nrefs = (uint16_t)prng_below(&g, 20);
		r->pkt_bytes = (uint16_t)prng_below(&g, 300);
		if (prng_below(&g, 2)) {
			r->pkts = 1;
			r->payload_bytes = 0;
		}
		ring_rx_init(&p.rx, p.shm, SIZE, p.back);
		atomic_store(&p.shm->tail, prng_below(&g, 4)
						   ? 64 * prng_below(&g, 9)
						   : prng_u64(&g));
		v = ring_rx_next(&p.rx, &it);
		ok += v == RING_OK;
		broken += v == RING_BROKEN;
		if (v == RING_OK) {
			assert_true(it.pkt >= p.shm->data);
			assert_true(it.pkt + it.rec.pkt_bytes <=
				    p.shm->data + SIZE);
			assert_true(it.rec.nrefs <= RING_REFS_MAX ||
				    it.rec.kind != RING_REFS);
		}
	}
	assert_true(ok > 100 && broken > 1000);
	pair_free(&p);
}

static void hostile_receiver(void **state)
{
	struct pair p = pair_new();

	(void)state;
	while (put(&p, 4000, 0))
		;
	(void)ring_tx_publish(&p.tx);
	atomic_store(&p.back->head, p.tx.tail + 64);
	assert_false(ring_tx_room(&p.tx));
	assert_true(p.tx.broken);
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(back_pressure),
		cmocka_unit_test(hostile_sender),
		cmocka_unit_test(hostile_receiver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
