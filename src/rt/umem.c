/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem.c - user memory: which way an access goes, and the kernel's way.
 */
#include "rt/umem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/uio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "rt/rawsys.h"
#include "rt/umem_asm.h"
#include "rt/umem_fault.h"

#define TAIL_BYTES 64		   /* stored after all before */
#define KERNEL_CHUNK (1ul << 30)   /* below the kernel's limit a call */
#define PIPE_CHUNK ((size_t)65536) /* what a new pipe holds */
#define REP_MIN_ERMS 1024

size_t umem_rep_min_bytes = SIZE_MAX;

enum { MODE_NONE, MODE_FIXUP, MODE_KERNEL };
static atomic_int mode;

/* How this thread accesses memory. initial-exec: the first use of a dynamic
 * TLS block may allocate. */
enum { THREAD_UNKNOWN, THREAD_DIRECT, THREAD_KERNEL };
static __thread unsigned char thread_way
	__attribute__((tls_model("initial-exec")));

static atomic_bool vm_refused; /* process_vm_* is not allowed here */
static _Atomic uint64_t kernel_copies;

/* ---- life ---- */

static void cpu_probe(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 9)))
		umem_rep_min_bytes = REP_MIN_ERMS;
#endif
}

int umem_init(enum umem_mode want)
{
	int r = 0;

	if (atomic_load(&mode) != MODE_NONE) {
		umem_check();
		return 0;
	}
	cpu_probe();
	if (want == UMEM_FIXUP)
		r = umem_fault_install();
	if (r == 0)
		atomic_store(&mode,
			     want == UMEM_FIXUP ? MODE_FIXUP : MODE_KERNEL);
	return r;
}

void umem_thread_check(void)
{
	if (atomic_load_explicit(&mode, memory_order_acquire) == MODE_FIXUP)
		thread_way =
			umem_fault_unblocked() ? THREAD_DIRECT : THREAD_KERNEL;
}

void umem_check(void)
{
	if (atomic_load(&mode) != MODE_FIXUP)
		return;
	/* If a sandbox forbids it by now, the handlers are as they were. */
	if (umem_fault_install() == 0)
		umem_thread_check();
}

static bool direct(void)
{
	if (UNLIKELY(thread_way == THREAD_UNKNOWN))
		umem_thread_check();
	return thread_way == THREAD_DIRECT;
}

uint64_t umem_faults(void)
{
	return umem_fault_count();
}

uint64_t umem_kernel_copies(void)
{
	return atomic_load_explicit(&kernel_copies, memory_order_relaxed);
}

int umem_sigaction_hook(int signo, const struct sigaction *act,
			struct sigaction *ret_old)
{
	return umem_fault_hook(signo, act, ret_old);
}

/* The largest of 8, 4, 2, 1 bytes that end at `end`, aligned, and are within
 * len: what one store makes visible at once. */
static size_t last_unit(uint64_t end, size_t len)
{
	size_t unit = 8;

	while (unit > len || (end & (unit - 1)) != 0)
		unit >>= 1;
	return unit;
}

/* ---- the kernel's way ---- */

/* Through a pipe: write() reads the source, read() writes the destination,
 * both give EFAULT. The pipe lives for one copy: a descriptor that stays could
 * be closed under us and become a file of the program. */
static int pipe_move(int in, int out, char *dst, const char *src, size_t len)
{
	while (len > 0) {
		size_t n = len < PIPE_CHUNK ? len : PIPE_CHUNK;
		long put = RAWSYS3(SYS_write, in, src, n);

		if (put <= 0)
			return -EFAULT;
		src += put;
		len -= (size_t)put;
		while (put > 0) {
			long got = RAWSYS3(SYS_read, out, dst, put);

			if (got <= 0)
				return -EFAULT;
			dst += got;
			put -= got;
		}
	}
	return 0;
}

static int pipe_copy(void *dst, const void *src, size_t len)
{
	int fd[2];
	int r;

	if (RAWSYS2(SYS_pipe2, fd, O_CLOEXEC | O_NONBLOCK) != 0)
		return -EFAULT;
	r = pipe_move(fd[1], fd[0], dst, src, len);
	(void)RAWSYS1(SYS_close, fd[0]);
	(void)RAWSYS1(SYS_close, fd[1]);
	return r;
}

static int pipe_copy_parts(bool to_user, char *ours, const struct iovec *part,
			   int n)
{
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++) {
		r = to_user ? pipe_copy(part[i].iov_base, ours, part[i].iov_len)
			    : pipe_copy(ours, part[i].iov_base,
					part[i].iov_len);
		ours += part[i].iov_len;
	}
	return r;
}

/* Copies between `ours` and the parts of user memory, in this order. */
static int kernel_copy_parts(long nr, void *ours, const struct iovec *part,
			     int n)
{
	struct iovec local = { ours, 0 };
	long r;

	for (int i = 0; i < n; i++)
		local.iov_len += part[i].iov_len;
	atomic_fetch_add_explicit(&kernel_copies, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&vm_refused, memory_order_relaxed)) {
		r = RAWSYS6(nr, RAWSYS0(SYS_getpid), &local, 1, part, n, 0);
		if (r == (long)local.iov_len)
			return 0;
		if (r != -EPERM && r != -ENOSYS)
			return -EFAULT;
		atomic_store(&vm_refused, true);
	}
	return pipe_copy_parts(nr == SYS_process_vm_writev, ours, part, n);
}

bool umem_kernel_refused(void)
{
	uint64_t ours = 0, theirs = 0;
	struct iovec local = { &ours, sizeof(ours) };
	struct iovec remote = { &theirs, sizeof(theirs) };
	long pid = RAWSYS0(SYS_getpid);

	if (RAWSYS6(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0) < 0 ||
	    RAWSYS6(SYS_process_vm_writev, pid, &local, 1, &remote, 1, 0) < 0)
		atomic_store(&vm_refused, true);
	return atomic_load(&vm_refused);
}

static int kernel_read(void *dst, uint64_t va, size_t len)
{
	int r = 0;

	while (r == 0 && len > 0) {
		size_t n = len < KERNEL_CHUNK ? len : KERNEL_CHUNK;
		struct iovec part = { (void *)(uintptr_t)va, n };

		r = kernel_copy_parts(SYS_process_vm_readv, dst, &part, 1);
		dst = (char *)dst + n;
		va += n;
		len -= n;
	}
	return r;
}

static int kernel_write(uint64_t va, const void *src, size_t len)
{
	struct iovec part[3]; /* as umem_write: all but the tail, the tail
			       * without its last unit, that unit */
	char *p = (char *)(uintptr_t)va;
	/* The kernel only reads from it. */
	char *from = (char *)(uintptr_t)src;
	size_t head = len > TAIL_BYTES ? len - TAIL_BYTES : 0;
	size_t unit = last_unit(va + len, len);
	int r = 0;

	for (; head > KERNEL_CHUNK && r == 0; head -= KERNEL_CHUNK) {
		part[0] = (struct iovec){ p, KERNEL_CHUNK };
		r = kernel_copy_parts(SYS_process_vm_writev, from, part, 1);
		p += KERNEL_CHUNK;
		from += KERNEL_CHUNK;
		len -= KERNEL_CHUNK;
	}
	part[0] = (struct iovec){ p, head };
	part[1] = (struct iovec){ p + head, len - head - unit };
	part[2] = (struct iovec){ p + len - unit, unit };
#if defined(__x86_64__)
	/* The kernel's copies of two parts do not pass each other. */
	if (r == 0)
		r = kernel_copy_parts(SYS_process_vm_writev, from, part, 3);
#else
	for (int i = 0; i < 3 && r == 0; i++) {
		if (part[i].iov_len > 0)
			r = kernel_copy_parts(SYS_process_vm_writev, from,
					      &part[i], 1);
		from += part[i].iov_len;
		atomic_thread_fence(memory_order_release);
	}
#endif
	return r;
}

/* Can the 8 bytes at va be changed? An atomic OR with 0 by the kernel, which
 * answers EFAULT if not. It may wake a futex waiter there for nothing, which
 * every waiter must expect. */
static int kernel_probe_word(uint64_t va)
{
	static uint32_t nobody_waits_here;
	int op = (FUTEX_OP_OR << 28) | (FUTEX_OP_CMP_EQ << 24);

	return RAWSYS6(SYS_futex, &nobody_waits_here,
		       FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, va, op) < 0
		       ? -EFAULT
		       : 0;
}

/* ---- copies ---- */

int umem_read(void *dst, uint64_t va, size_t len)
{
	if (LIKELY(direct()))
		return umem_asm_copy(dst, (const void *)(uintptr_t)va, len);
	return kernel_read(dst, va, len);
}

static int direct_write(uint64_t va, const uint8_t *src, size_t len)
{
	uint8_t *p = (uint8_t *)(uintptr_t)va;
	size_t unit, head;
	int r = 0;

	if (len > TAIL_BYTES) {
		head = len - TAIL_BYTES;
		r = umem_asm_copy(p, src, head);
		/* dmb on arm64; x86 keeps the order of stores. */
		atomic_thread_fence(memory_order_release);
		p += head;
		src += head;
		len = TAIL_BYTES;
	}
	unit = last_unit((uintptr_t)p + len, len);
	head = len - unit;
	if (r == 0 && head > 0) {
		r = umem_asm_copy(p, src, head);
		atomic_thread_fence(memory_order_release);
	}
	return r != 0 ? r : umem_asm_store(p + head, src + head, unit);
}

int umem_write(uint64_t va, const void *src, size_t len)
{
	if (len == 0)
		return 0;
	return LIKELY(direct()) ? direct_write(va, src, len)
				: kernel_write(va, src, len);
}

/* ---- atomics ---- */

static int atomic_allowed(uint64_t va)
{
	if (va & 7)
		return -EFAULT;
	return LIKELY(direct()) ? 0 : kernel_probe_word(va);
}

int umem_cmp_swap(uint64_t va, uint64_t compare, uint64_t swap,
		  uint64_t *ret_orig)
{
	int r = atomic_allowed(va);

	return r != 0 ? r : umem_asm_cmp_swap(va, compare, swap, ret_orig);
}

int umem_fetch_add(uint64_t va, uint64_t add, uint64_t *ret_orig)
{
	int r = atomic_allowed(va);

	return r != 0 ? r : umem_asm_fetch_add(va, add, ret_orig);
}
