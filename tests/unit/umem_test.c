/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_test.c - copies, atomics, and their faults, which become -EFAULT; and
 * without the handler, where threads block the signal or on demand.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "umem_rig.h"

#define SIZES 301

/* n accessible pages between two that are not. */
static uint8_t *guarded(size_t n, int prot)
{
	uint8_t *p = mmap(NULL, (n + 2) * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE, n * PAGE, PROT_READ | PROT_WRITE),
			 0);
	for (size_t i = 0; i < n * PAGE; i++)
		p[PAGE + i] = (uint8_t)(i * 31 + 7);
	assert_int_equal(mprotect(p + PAGE, n * PAGE, prot), 0);
	return p + PAGE;
}

static void unguarded(uint8_t *p, size_t n)
{
	munmap(p - PAGE, (n + 2) * PAGE);
}

static void fill(uint8_t *p, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 13);
}

/* cmocka puts its own SIGSEGV handler in place before each test, by signal(),
 * and the one before (ours) back after it. */
static void begin(void **state)
{
	(void)state;
	assert_int_equal(umem_init(UMEM_FIXUP), 0);
}

/* ---- copies ---- */

/* Room on both sides shows stores outside the range. */
static void check_write(uint8_t *dst, const uint8_t *src, size_t len)
{
	memset(dst - 64, 0xee, len + 128);
	assert_int_equal(umem_write(va_of(dst), src, len), 0);
	assert_memory_equal(dst, src, len);
	for (size_t i = 1; i <= 64; i++) {
		assert_int_equal(dst[-(ptrdiff_t)i], 0xee);
		assert_int_equal(dst[len + i - 1], 0xee);
	}
}

static void check_read(uint8_t *dst, const uint8_t *src, size_t len)
{
	memset(dst - 64, 0xee, len + 128);
	assert_int_equal(umem_read(dst, va_of(src), len), 0);
	assert_memory_equal(dst, src, len);
	for (size_t i = 1; i <= 64; i++) {
		assert_int_equal(dst[-(ptrdiff_t)i], 0xee);
		assert_int_equal(dst[len + i - 1], 0xee);
	}
}

static void small_copies(void)
{
	static uint8_t a[SIZES + 256], b[SIZES + 256];

	fill(b, sizeof(b), 3);
	for (size_t len = 0; len < SIZES; len++) {
		for (size_t at = 0; at < 16; at++) {
			check_write(a + 64 + at, b + 7 * at % 16, len);
			check_read(a + 64 + 7 * at % 16, b + at, len);
		}
	}
}

static void big_copies(void)
{
	static const size_t sizes[] = { 1000,  1023,  1024,    1025,
					1087,  1088,  1089,    2048,
					4095,  4096,  4160,    65535,
					65536, 65600, 1 << 20, (1 << 20) + 77 };
	size_t room = (1 << 20) + 512;
	uint8_t *a = malloc(room), *b = malloc(room);

	assert_non_null(a);
	assert_non_null(b);
	fill(b, room, 9);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t at = 0; at < 5; at++) {
			check_write(a + 64 + at, b + 3 * at, sizes[i]);
			check_read(a + 64 + 5 * at, b + at, sizes[i]);
		}
	}
	free(a);
	free(b);
}

static void test_copy_small(void **state)
{
	begin(state);
	small_copies();
}

static void test_copy_big(void **state)
{
	begin(state);
	big_copies();
}

/* ---- faults at every position ---- */

/* Every length that starts inside and ends `over` bytes past the end. */
static void faults_past_end(uint8_t *p, size_t n, bool write)
{
	static uint8_t buf[3 * PAGE];
	uint8_t *end = p + n * PAGE;

	for (size_t before = 0; before <= SIZES; before++) {
		for (size_t over = 1; over < 70; over += 1 + over / 8) {
			uint64_t va = va_of(end - before);
			size_t len = before + over;
			int r = write ? umem_write(va, buf, len)
				      : umem_read(buf, va, len);

			assert_int_equal(r, -EFAULT);
		}
		assert_int_equal(
			write ? umem_write(va_of(end - before), buf, before)
			      : umem_read(buf, va_of(end - before), before),
			0);
	}
	assert_int_equal(write ? umem_write(va_of(end) - 2000, buf, 4000)
			       : umem_read(buf, va_of(end) - 2000, 4000),
			 -EFAULT);
}

static void faults_before_start(uint8_t *p, bool write)
{
	static uint8_t buf[2 * PAGE];

	for (size_t before = 1; before < 70; before++) {
		for (size_t in = 0; in < SIZES; in += 1 + in / 8) {
			int r = write ? umem_write(va_of(p - before), buf,
						   before + in)
				      : umem_read(buf, va_of(p - before),
						  before + in);

			assert_int_equal(r, -EFAULT);
		}
	}
}

static void faults_unmapped(void)
{
	static uint8_t buf[PAGE];
	uint8_t *p = guarded(2, PROT_READ | PROT_WRITE);
	uint8_t *ro = guarded(2, PROT_READ);

	faults_past_end(p, 2, false);
	faults_past_end(p, 2, true);
	faults_before_start(p, false);
	faults_before_start(p, true);
	for (size_t len = 1; len < SIZES; len++) {
		assert_int_equal(umem_write(va_of(ro) + len % 16, buf, len),
				 -EFAULT);
		assert_int_equal(umem_read(buf, va_of(ro) + len % 16, len), 0);
	}
	assert_int_equal(umem_write(va_of(ro), buf, PAGE), -EFAULT);
	for (size_t i = 0; i < 2 * PAGE; i++)
		assert_int_equal(ro[i], (uint8_t)(i * 31 + 7));
	unguarded(p, 2);
	unguarded(ro, 2);
}

static void faults_odd_addresses(void)
{
	static const uint64_t bad[] = { 0,
					8,
					0x0000800000000000ull,
					0x8000000000000000ull,
					0xffff800000000000ull,
					0xffffffffffffff00ull };
	uint8_t buf[2048];
	uint64_t orig = 77;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (size_t len = 1; len <= sizeof(buf); len *= 2) {
			assert_int_equal(umem_read(buf, bad[i], len), -EFAULT);
			assert_int_equal(umem_write(bad[i], buf, len), -EFAULT);
		}
		assert_int_equal(umem_cmp_swap(bad[i], 1, 2, &orig), -EFAULT);
		assert_int_equal(umem_fetch_add(bad[i], 1, &orig), -EFAULT);
		assert_int_equal(orig, 77);
	}
}

/* Past the end of a mapped file: SIGBUS. */
static void faults_past_eof(void)
{
	static uint8_t buf[2 * PAGE];
	int fd = memfd_create("umem_test", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	assert_int_equal(umem_write(va_of(p), buf, PAGE), 0);
	for (size_t len = 1; len < SIZES; len++) {
		uint64_t va = va_of(p + PAGE) - len / 2;

		assert_int_equal(umem_read(buf, va, len), -EFAULT);
		assert_int_equal(umem_write(va, buf, len), -EFAULT);
	}
	assert_int_equal(umem_write(va_of(p), buf, 2 * PAGE), -EFAULT);
	munmap(p, 2 * PAGE);
}

static void test_fault_unmapped(void **state)
{
	uint64_t before = umem_faults();

	begin(state);
	faults_unmapped();
	assert_true(umem_faults() > before);
}

static void test_fault_odd_addresses(void **state)
{
	begin(state);
	faults_odd_addresses();
}

static void test_fault_past_eof(void **state)
{
	begin(state);
	faults_past_eof();
}

static void test_errno_kept(void **state)
{
	uint8_t b = 0;

	begin(state);
	errno = 4711;
	assert_int_equal(umem_read(&b, 8, 1), -EFAULT);
	umem_check();
	assert_false(umem_probe(8, 1, false));
	assert_int_equal(errno, 4711);
}

/* ---- atomics ---- */

static void atomics_work(void)
{
	_Alignas(8) uint64_t word[2] = { 5, 0x1111 };
	uint8_t *ro = guarded(1, PROT_READ);
	uint64_t orig;

	assert_int_equal(umem_cmp_swap(va_of(word), 4, 9, &orig), 0);
	assert_int_equal(orig, 5);
	assert_int_equal(word[0], 5);
	assert_int_equal(umem_cmp_swap(va_of(word), 5, 9, &orig), 0);
	assert_int_equal(orig, 5);
	assert_int_equal(word[0], 9);
	assert_int_equal(umem_fetch_add(va_of(word), UINT64_MAX, &orig), 0);
	assert_int_equal(orig, 9);
	assert_int_equal(word[0], 8);
	assert_int_equal(word[1], 0x1111);
	orig = 1;
	assert_int_equal(umem_fetch_add(va_of(word) + 4, 1, &orig), -EFAULT);
	assert_int_equal(umem_cmp_swap(va_of(ro), 0, 0, &orig), -EFAULT);
	assert_int_equal(umem_fetch_add(va_of(ro), 0, &orig), -EFAULT);
	assert_int_equal(umem_fetch_add(va_of(ro + PAGE), 0, &orig), -EFAULT);
	assert_int_equal(orig, 1);
	unguarded(ro, 1);
}

static void test_atomics(void **state)
{
	begin(state);
	atomics_work();
}

static uint64_t shared_word;

static void *adder(void *arg)
{
	uint64_t orig, seen;

	(void)arg;
	for (int i = 0; i < 100000; i++) {
		if (umem_fetch_add(va_of(&shared_word), 1, &orig) != 0)
			return (void *)1;
		do {
			seen = orig;
			if (umem_cmp_swap(va_of(&shared_word), seen, seen + 1,
					  &orig) != 0)
				return (void *)1;
		} while (orig != seen);
	}
	return NULL;
}

static void test_atomics_threads(void **state)
{
	pthread_t t[2];
	void *r;

	begin(state);
	shared_word = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, adder, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(t[i], &r), 0);
		assert_null(r);
	}
	assert_int_equal(shared_word, 400000);
}

/* ---- order: the polled last byte implies all the others ---- */

struct order {
	uint8_t *buf;
	size_t len;
	int rounds;
	_Atomic int acked;
};

static void *order_writer(void *arg)
{
	struct order *o = arg;
	uint8_t *src = malloc(o->len);

	for (int i = 1; src && i <= o->rounds; i++) {
		memset(src, i & 0xff, o->len);
		if (umem_write(va_of(o->buf), src, o->len) != 0)
			break;
		while (o->acked != i)
			sched_yield();
	}
	free(src);
	return NULL;
}

static void order_run(size_t offset, size_t len, int rounds)
{
	static uint8_t buf[8192 + 64] __attribute__((aligned(64)));
	struct order o = { buf + offset, len, rounds, 0 };
	volatile uint8_t *p = buf + offset;
	size_t wrong;
	pthread_t t;

	memset(buf, 0, sizeof(buf));
	assert_int_equal(pthread_create(&t, NULL, order_writer, &o), 0);
	for (int i = 1; i <= rounds; i++) {
		while (p[len - 1] != (i & 0xff))
			;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		/* Downward: upward would trail behind a wrong writer. */
		wrong = 0;
		for (size_t k = len; k-- > 0;)
			wrong += p[k] != (i & 0xff);
		assert_int_equal(wrong, 0);
		o.acked = i;
	}
	pthread_join(t, NULL);
}

static void test_order(void **state)
{
	begin(state);
	order_run(0, 8192, 500);
	order_run(3, 4096, 500);
	order_run(61, 100, 3000);
	order_run(61, 13, 3000);
}

/* ---- probe ---- */

static void probe_holes(void)
{
	uint8_t *p = guarded(4, PROT_READ | PROT_WRITE);
	size_t big_len = 1ul << 33;
	uint8_t *big;

	assert_true(umem_probe(va_of(p), 4 * PAGE, true));
	assert_true(umem_probe(va_of(p) + 1, 4 * PAGE - 1, true));
	assert_int_equal(munmap(p + 2 * PAGE, PAGE), 0);
	assert_false(umem_probe(va_of(p), 4 * PAGE, false));
	assert_false(umem_probe(va_of(p) + 2 * PAGE - 1, 2, false));
	assert_true(umem_probe(va_of(p), 2 * PAGE, false));
	assert_true(umem_probe(va_of(p) + 3 * PAGE, PAGE, false));
	assert_true(umem_probe(0, 0, true));
	assert_false(umem_probe(0, 1, false));
	assert_false(umem_probe(UINT64_MAX - 5, 10, false));
	unguarded(p, 4);
	big = mmap(NULL, big_len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(big, MAP_FAILED);
	assert_true(umem_probe(va_of(big), big_len, true));
	munmap(big, big_len);
}

static void probe_rights(void)
{
	uint8_t *p = guarded(4, PROT_READ | PROT_WRITE);

	assert_true(umem_probe(va_of(p), 4 * PAGE, true));
	assert_false(umem_probe(va_of(p) + 1, 4 * PAGE, true));
	assert_false(umem_probe(va_of(p) - 1, 2, false));
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	assert_true(umem_probe(va_of(p), 4 * PAGE, false));
	assert_false(umem_probe(va_of(p), 4 * PAGE, true));
	assert_true(umem_probe(va_of(p), PAGE, true));
	assert_true(umem_probe(va_of(p) + 2 * PAGE, 2 * PAGE, true));
	unguarded(p, 4);
}

static void test_probe(void **state)
{
	begin(state);
	probe_rights();
	probe_holes();
}

/* ---- threads that block SIGSEGV, and kernel copies ---- */

static void *blocked_thread(void *arg)
{
	uint64_t before = umem_kernel_copies();
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	small_copies();
	big_copies();
	faults_unmapped();
	faults_odd_addresses();
	faults_past_eof();
	atomics_work();
	CHECK(umem_kernel_copies() > before);
	return NULL;
}

static int child_blocked(void)
{
	pthread_t t;
	uint64_t before;

	CHECK(umem_init(UMEM_FIXUP) == 0);
	make_bad_page();
	CHECK(pthread_create(&t, NULL, blocked_thread, NULL) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	/* This thread does not block them: no kernel copies. */
	before = umem_kernel_copies();
	CHECK(umem_survives());
	CHECK(umem_kernel_copies() == before);
	return 0;
}

/* The mask changes after the first access. */
static int child_blocked_later(void)
{
	sigset_t set;

	CHECK(umem_init(UMEM_FIXUP) == 0);
	make_bad_page();
	CHECK(umem_survives());
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	umem_thread_check();
	CHECK(umem_survives());
	CHECK(umem_kernel_copies() > 0);
	return 0;
}

static int child_kernel_mode(void)
{
	struct sigaction old;

	CHECK(umem_init(UMEM_KERNEL) == 0);
	CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
	CHECK(old.sa_handler == SIG_DFL);
	blocked_thread(NULL);
	CHECK(umem_faults() == 0);
	return 0;
}

/* From now on the system call fails with this errno. */
static void deny(int nr, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0) {
		fprintf(stderr, "# no seccomp: not tried with %d denied\n", nr);
		_exit(0);
	}
}

/* Sandboxes forbid process_vm_*: then pipes. */
static int child_kernel_mode_pipe(void)
{
	deny(SYS_process_vm_readv, EPERM);
	deny(SYS_process_vm_writev, EPERM);
	CHECK(umem_init(UMEM_KERNEL) == 0);
	blocked_thread(NULL);
	return 0;
}

/* The older ways of umem_probe(). */
static int child_probe_text(void)
{
	deny(SYS_ioctl, ENOTTY);
	probe_rights();
	probe_holes();
	return 0;
}

static int child_probe_mincore(void)
{
	deny(SYS_openat, ENOENT);
	probe_holes();
	return 0;
}

static void test_probe_fallbacks(void **state)
{
	(void)state;
	assert_exits(child_probe_text);
	assert_exits(child_probe_mincore);
}

static void test_blocked_thread(void **state)
{
	(void)state;
	assert_exits(child_blocked);
	assert_exits(child_blocked_later);
}

static void test_kernel_mode(void **state)
{
	(void)state;
	assert_exits(child_kernel_mode);
	assert_exits(child_kernel_mode_pipe);
}

int main(void)
{
	/* The children of the first ones start without umem_init(). */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked_thread),
		cmocka_unit_test(test_kernel_mode),
		cmocka_unit_test(test_probe_fallbacks),
		cmocka_unit_test(test_copy_small),
		cmocka_unit_test(test_copy_big),
		cmocka_unit_test(test_fault_unmapped),
		cmocka_unit_test(test_fault_odd_addresses),
		cmocka_unit_test(test_fault_past_eof),
		cmocka_unit_test(test_errno_kept),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_atomics_threads),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
