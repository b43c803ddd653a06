/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What kernel Soft-RoCE sent (tests/captures): each packet decodes, encodes to
 * the same bytes again, and its ICRC is right. CAPTURES_DIR comes from meson.
 */
#include "wire/pkt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pcap/pcap.h>
#include <string.h>

#include "wire/rocev2.h"

/* RoCEv2 packets in each, counted by another program. */
static const struct capture {
	const char *name;
	unsigned packets;
} captures[] = {
	{ "cm_req", 16 },
	{ "golden_atomic_cas", 10 },
	{ "golden_atomic_fadd", 10 },
	{ "golden_cm_reject", 2 },
	{ "golden_cm_rping", 29 },
	{ "golden_cm_rping_v6", 17 },
	{ "golden_cm_rstream", 59 },
	{ "golden_cm_ucmatose", 13 },
	{ "golden_cm_udaddy", 6 },
	{ "golden_loss_ack", 30 },
	{ "golden_loss_read", 62 },
	{ "golden_loss_readresp", 78 },
	{ "golden_loss_send", 39 },
	{ "golden_loss_write", 56 },
	{ "golden_mckey", 3 },
	{ "golden_mtu4096_rc_ops", 22 },
	{ "golden_mtu4096_ud", 6 },
	{ "golden_nak_badread", 7 },
	{ "golden_nak_badrkey", 11 },
	{ "golden_nak_inv", 7 },
	{ "golden_nak_oob", 9 },
	{ "golden_rc_bursts", 53 },
	{ "golden_rc_ops", 39 },
	{ "golden_rc_send", 32 },
	{ "golden_rc_send_4k", 40 },
	{ "golden_rc_send_odd", 18 },
	{ "golden_rc_send_v6", 24 },
	{ "golden_read_10000", 55 },
	{ "golden_retry_exhaust", 11 },
	{ "golden_rnr", 69 },
	{ "golden_rnr_exhaust", 11 },
	{ "golden_srq_send", 24 },
	{ "golden_uc_send", 20 },
	{ "golden_uc_write", 15 },
	{ "golden_ud_send", 12 },
	{ "golden_ud_send_v6", 8 },
	{ "golden_write_10000", 55 },
};

static unsigned opcodes_seen[256];

static void check_transport(const uint8_t *p, size_t len)
{
	uint8_t again[PKT_HDR_MAX];
	uint32_t pad;
	struct pkt k;

	assert_int_equal(pkt_decode(&k, p, len), PKT_OK);
	assert_int_equal(pkt_encode_headers(&k, again), k.info->hdr_bytes);
	assert_memory_equal(again, p, k.info->hdr_bytes);
	pad = pkt_pad(k.payload_bytes);
	assert_int_equal(k.bth.pad, pad);
	assert_int_equal(k.info->hdr_bytes + k.payload_bytes + pad, len);
	opcodes_seen[k.bth.opcode]++;
}

/* A receiver that cannot see ID and DF finds them. */
static void check_hidden_id(const struct rocev2_flow *f, const uint8_t *p,
			    size_t len)
{
	struct rocev2_flow hidden = *f;
	bool v4 = gid_is_v4(&f->src), df = false;
	uint16_t id = 0;

	if (v4) {
		hidden.ip_id = 0;
		hidden.df = false;
		assert_false(rocev2_icrc_ok(&hidden, p, len));
	}
	assert_true(rocev2_icrc_ok_any_id(&hidden, p, len, &id, &df));
	if (v4) {
		assert_int_equal(id, f->ip_id);
		assert_int_equal(df, f->df);
	}
}

/* Returns 1 for a RoCEv2 packet, 0 for others (IGMP). */
static unsigned check_frame(const uint8_t *p, size_t len)
{
	size_t eth_len, hdr_len, pkt_len;
	struct rocev2_flow f;
	uint8_t again[64];
	struct eth eth;

	eth_len = eth_decode(&eth, p, len);
	assert_int_equal(eth_len, ETH_BYTES);
	assert_int_equal(eth_encode(&eth, again), ETH_BYTES);
	assert_memory_equal(again, p, ETH_BYTES);
	p += eth_len;
	hdr_len = rocev2_decode_headers(&f, p, len - eth_len, &pkt_len);
	if (!hdr_len)
		return 0;
	assert_int_equal(eth_len + hdr_len + pkt_len, len);
	assert_int_equal(rocev2_encode_headers(&f, pkt_len, again), hdr_len);
	assert_memory_equal(again, p, hdr_len);
	p += hdr_len;
	assert_true(rocev2_icrc_ok(&f, p, pkt_len));
	check_hidden_id(&f, p, pkt_len);
	check_transport(p, pkt_len - ICRC_BYTES);
	return 1;
}

static void walk(const struct capture *c)
{
	char path[512], err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	unsigned packets = 0;
	const uint8_t *p;
	pcap_t *pc;
	int rc;

	snprintf(path, sizeof(path), CAPTURES_DIR "/%s.pcap", c->name);
	pc = pcap_open_offline(path, err);
	assert_non_null(pc);
	assert_int_equal(pcap_datalink(pc), DLT_EN10MB);
	while ((rc = pcap_next_ex(pc, &h, &p)) == 1) {
		assert_int_equal(h->caplen, h->len);
		packets += check_frame(p, h->caplen);
	}
	assert_int_equal(rc, PCAP_ERROR_BREAK);
	assert_true(packets > 0);
	if (packets != c->packets)
		fail_msg("%s: %u packets", c->name, packets);
	pcap_close(pc);
}

static void test_every_capture(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
		walk(&captures[i]);
}

/* The captures are no good when they do not hold what they should. */
static void test_they_cover_the_opcodes(void **state)
{
	static const enum op rc_ops[] = {
		OP_SEND_FIRST,	   OP_SEND_MIDDLE,     OP_SEND_LAST,
		OP_SEND_ONLY,	   OP_SEND_ONLY_IMM,   OP_SEND_ONLY_INV,
		OP_WRITE_FIRST,	   OP_WRITE_MIDDLE,    OP_WRITE_LAST,
		OP_WRITE_LAST_IMM, OP_WRITE_ONLY,      OP_WRITE_ONLY_IMM,
		OP_READ_REQUEST,   OP_READ_RESP_FIRST, OP_READ_RESP_MIDDLE,
		OP_READ_RESP_LAST, OP_READ_RESP_ONLY,  OP_ACK,
		OP_ATOMIC_ACK,	   OP_CMP_SWAP,	       OP_FETCH_ADD,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rc_ops) / sizeof(rc_ops[0]); i++)
		assert_true(opcodes_seen[OPCODE(TRANSPORT_RC, rc_ops[i])] > 0);
	assert_true(opcodes_seen[OPCODE(TRANSPORT_UC, OP_SEND_FIRST)] > 0);
	assert_true(opcodes_seen[OPCODE(TRANSPORT_UC, OP_WRITE_FIRST)] > 0);
	assert_true(opcodes_seen[OPCODE(TRANSPORT_UD, OP_SEND_ONLY)] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_capture),
		cmocka_unit_test(test_they_cover_the_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
