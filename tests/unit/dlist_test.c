/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/dlist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The list holds exactly these nodes, forwards and backwards. */
static void check(struct dlist *head, struct dlist **want, int n)
{
	struct dlist *f = head->next, *b = head->prev;

	for (int i = 0; i < n; i++) {
		assert_ptr_equal(f, want[i]);
		assert_ptr_equal(b, want[n - 1 - i]);
		f = f->next;
		b = b->prev;
	}
	assert_ptr_equal(f, head);
	assert_ptr_equal(b, head);
	assert_int_equal(dlist_empty(head), n == 0);
	assert_ptr_equal(dlist_first(head), n ? want[0] : NULL);
}

static void test_push_and_remove(void **state)
{
	struct dlist head, a, b, c;

	(void)state;
	dlist_init(&head);
	dlist_init(&a);
	check(&head, NULL, 0);
	assert_false(dlist_linked(&a));
	dlist_push_back(&head, &a);
	check(&head, (struct dlist *[]){ &a }, 1);
	assert_true(dlist_linked(&a));
	dlist_push_back(&head, &b);
	dlist_push_front(&head, &c);
	check(&head, (struct dlist *[]){ &c, &a, &b }, 3);
	dlist_remove(&a);
	check(&head, (struct dlist *[]){ &c, &b }, 2);
	assert_false(dlist_linked(&a));
	dlist_remove(&b);
	check(&head, (struct dlist *[]){ &c }, 1);
	dlist_remove(&c);
	check(&head, NULL, 0);
}

static void test_remove_unlinked_is_harmless(void **state)
{
	struct dlist head, a, b;

	(void)state;
	dlist_init(&head);
	dlist_init(&b);
	dlist_push_back(&head, &a);
	dlist_remove(&b);
	dlist_remove(&a);
	dlist_remove(&a);
	check(&head, NULL, 0);
	dlist_push_front(&head, &a);
	check(&head, (struct dlist *[]){ &a }, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_and_remove),
		cmocka_unit_test(test_remove_unlinked_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
