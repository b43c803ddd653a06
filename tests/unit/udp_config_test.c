/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp_config_test.c - a udp_link's limits; no frame is sent. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "link/udp.h"
#include "link/udp_priv.h"

static void test_config(void **state)
{
	struct udp_link_config cfg = { .send_sockets = 65 };
	struct gid addr = gid_from_v4(0x7f000001);
	struct udp_link *l;

	(void)state;
	assert_int_equal(udp_link_new(&cfg, &l), -EINVAL);
	cfg.send_sockets = 64;
	assert_int_equal(udp_link_new(&cfg, &l), 0);
	for (unsigned i = 0; i < UDP_RX_SOCKETS_MAX; i++)
		assert_int_equal(udp_link_add_rx(l, 0, &addr), 0);
	assert_int_equal(udp_link_add_rx(l, 0, &addr), -ENOSPC);
	assert_int_equal(udp_link_flush(l), 0);
	for (unsigned i = 0; i < UDP_RX_SOCKETS_MAX; i++)
		udp_link_remove_rx(l, 0);
	assert_int_equal(udp_link_rx(l, 1, NULL, NULL), 0);
	udp_link_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
