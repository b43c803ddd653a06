/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CM messages: every MAD that kernel Soft-RoCE sent decodes, encodes to the
 * same bytes again, and says what the tools printed (tests/captures).
 */
#include "wire/cm_msg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pcap/pcap.h>
#include <string.h>

#include "base/prng.h"
#include "wire/pkt.h"
#include "wire/rocev2.h"

#define MSGS_MAX 32

struct seen {
	struct cm_msg m[MSGS_MAX];
	unsigned n;
};

/* The MAD in an Ethernet frame, or NULL. */
static const uint8_t *mad_of(const uint8_t *p, size_t len, struct pkt *k)
{
	size_t hdr_len, pkt_len;
	struct rocev2_flow f;

	p += ETH_BYTES;
	hdr_len = rocev2_decode_headers(&f, p, len - ETH_BYTES, &pkt_len);
	if (!hdr_len)
		return NULL;
	assert_int_equal(pkt_decode(k, p + hdr_len, pkt_len - ICRC_BYTES),
			 PKT_OK);
	if (k->bth.dest_qpn != BTH_QPN_GSI)
		return NULL;
	assert_int_equal(k->payload_bytes, MAD_BYTES);
	assert_int_equal(k->ext.deth.qkey, GSI_QKEY);
	assert_int_equal(k->ext.deth.src_qpn, BTH_QPN_GSI);
	return k->payload;
}

static void walk(const char *name, struct seen *ret)
{
	char path[512], err[PCAP_ERRBUF_SIZE];
	uint8_t again[MAD_BYTES];
	struct pcap_pkthdr *h;
	const uint8_t *p, *mad;
	struct pkt k;
	pcap_t *pc;

	ret->n = 0;
	snprintf(path, sizeof(path), CAPTURES_DIR "/%s.pcap", name);
	pc = pcap_open_offline(path, err);
	assert_non_null(pc);
	while (pcap_next_ex(pc, &h, &p) == 1) {
		mad = mad_of(p, h->caplen, &k);
		if (!mad)
			continue;
		assert_true(ret->n < MSGS_MAX);
		assert_true(cm_msg_decode(&ret->m[ret->n], mad));
		memset(again, 0xaa, sizeof(again));
		cm_msg_encode(&ret->m[ret->n], again);
		assert_memory_equal(again, mad, MAD_BYTES);
		ret->n++;
	}
	pcap_close(pc);
}

static void expect(const struct seen *s, const enum cm_attr *attrs, unsigned n)
{
	assert_int_equal(s->n, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(s->m[i].attr, attrs[i]);
}

static void check_req(const struct cm_msg *m, uint8_t ip)
{
	struct rdmacm_hdr h;
	uint8_t again[RDMACM_HDR_BYTES];

	assert_int_equal(m->service_id >> 16, 0x106);
	assert_int_equal(m->primary.local_lid, 0xffff);
	assert_int_equal(m->primary.remote_lid, 0xffff);
	assert_int_equal(m->primary.hop_limit, 64);
	assert_int_equal(m->primary.rate, 0);
	assert_int_equal(m->primary.ack_timeout, 0x13);
	assert_int_equal(m->remote_timeout, 0x14);
	assert_int_equal(m->local_timeout, 0x14);
	assert_int_equal(m->max_cm_retries, 15);
	assert_int_equal(m->mtu, 3);
	assert_int_equal(m->pkey, 0xffff);
	assert_int_equal(m->transport, 0);
	assert_true(rdmacm_hdr_decode(&h, m->priv));
	assert_int_equal(h.ip, ip);
	assert_int_equal(gid_is_v4(&h.src), ip == 4);
	assert_true(gid_eq(&h.src, &m->primary.local_gid));
	assert_true(gid_eq(&h.dst, &m->primary.remote_gid));
	assert_int_equal(m->primary.flow_label,
			 (h.sport * 31u + (m->service_id & 0xffff)) & 0xfffff);
	rdmacm_hdr_encode(&h, again);
	assert_memory_equal(again, m->priv, sizeof(again));
}

static void test_connections(void **state)
{
	static const enum cm_attr life[] = { CM_REQ, CM_REP, CM_RTU, CM_DREQ,
					     CM_DREP };
	static const char *const names[] = { "golden_cm_rping",
					     "golden_cm_rping_v6" };
	struct seen s;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		walk(names[i], &s);
		expect(&s, life, 5);
		check_req(&s.m[0], i ? 6 : 4);
		assert_int_equal(s.m[1].remote_id, s.m[0].local_id);
		assert_int_equal(s.m[1].ack_delay, 0x0f);
		assert_int_equal(s.m[2].local_id, s.m[0].local_id);
		assert_int_equal(s.m[2].remote_id, s.m[1].local_id);
		for (unsigned j = 1; j < 5; j++)
			assert_int_equal(s.m[j].tid, s.m[0].tid);
	}
}

static void test_rejected(void **state)
{
	static const enum cm_attr life[] = { CM_REQ, CM_REJ };
	struct seen s;

	(void)state;
	walk("golden_cm_reject", &s);
	expect(&s, life, 2);
	assert_int_equal(s.m[1].reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(s.m[1].local_id, 0);
	assert_int_equal(s.m[1].remote_id, s.m[0].local_id);
	assert_int_equal(s.m[1].which, CM_WHICH_REQ);
}

static void test_unanswered(void **state)
{
	struct seen s;

	(void)state;
	walk("cm_req", &s);
	assert_int_equal(s.n, 16);
	for (unsigned i = 1; i < s.n; i++)
		assert_memory_equal(&s.m[i], &s.m[0], sizeof(s.m[0]));
}

static void test_sidr(void **state)
{
	static const enum cm_attr life[] = { CM_SIDR_REQ, CM_SIDR_REP };
	struct seen s;
	struct rdmacm_hdr h;

	(void)state;
	walk("golden_cm_udaddy", &s);
	expect(&s, life, 2);
	assert_int_equal(s.m[0].service_id >> 16, 0x111);
	assert_true(rdmacm_hdr_decode(&h, s.m[0].priv));
	assert_int_equal(s.m[1].local_id, s.m[0].local_id);
	assert_int_equal(s.m[1].status, CM_SIDR_OK);
	assert_int_equal(s.m[1].qkey, 0x01234567);
	assert_true(s.m[1].qpn > 1);
}

static void test_others(void **state)
{
	static const char *const names[] = { "golden_cm_ucmatose",
					     "golden_cm_rstream",
					     "golden_rc_bursts" };
	struct seen s;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		walk(names[i], &s);
		assert_true(s.n >= 5);
	}
}

/* Any bytes decode to something that encodes to what decodes the same. */
static void test_random_bytes(void **state)
{
	uint8_t mad[MAD_BYTES], again[MAD_BYTES];
	struct cm_msg a, b;
	struct prng r;

	(void)state;
	prng_init(&r, 6);
	for (unsigned i = 0; i < 5000; i++) {
		for (unsigned j = 0; j < MAD_BYTES; j++)
			mad[j] = (uint8_t)prng_u32(&r);
		memcpy(mad, "\x01\x07\x02\x03\0\0\0\0", 8);
		mad[16] = 0;
		mad[17] = (uint8_t)(CM_ATTR_FIRST + i % 11);
		assert_true(cm_msg_decode(&a, mad));
		cm_msg_encode(&a, again);
		assert_true(cm_msg_decode(&b, again));
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void test_not_ours(void **state)
{
	static const struct {
		uint8_t at, value;
	} bad[] = { { 0, 2 },  { 1, 4 },     { 2, 1 },	  { 3, 0x83 },
		    { 16, 1 }, { 17, 0x0f }, { 17, 0x1b } };
	uint8_t mad[MAD_BYTES];
	struct cm_msg m = { .attr = CM_RTU, .local_id = 1, .remote_id = 2 };

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cm_msg_encode(&m, mad);
		assert_true(cm_msg_decode(&m, mad));
		mad[bad[i].at] = bad[i].value;
		assert_false(cm_msg_decode(&m, mad));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_rejected),
		cmocka_unit_test(test_unanswered),
		cmocka_unit_test(test_sidr),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
