/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_x86_64.S - accesses to user memory that may fault; see umem_asm.h.
 *
 * Arguments: rdi, rsi, rdx, rcx. No stack, no callee-saved register.
 */

#define FUNC(name)                                                            \
	.globl	name;                                                         \
	.hidden	name;                                                         \
	.type	name, @function;                                              \
	.p2align 5;                                                           \
name:;                                                                        \
	.cfi_startproc

#define END(name)                                                             \
	.cfi_endproc;                                                         \
	.size	name, . - name

	.text
	.p2align 6
	.globl	umem_text_begin
	.hidden	umem_text_begin
umem_text_begin:

FUNC(umem_asm_copy)
	cmpq	$16, %rdx
	jb	.Lcopy_below_16
	cmpq	$32, %rdx
	ja	.Lcopy_above_32
	movdqu	(%rsi), %xmm0
	movdqu	-16(%rsi,%rdx), %xmm1
	movdqu	%xmm0, (%rdi)
	movdqu	%xmm1, -16(%rdi,%rdx)
	xorl	%eax, %eax
	ret

.Lcopy_above_32:
	cmpq	umem_rep_min_bytes(%rip), %rdx
	jae	.Lcopy_rep
.Lcopy_loop_setup:
	/* Count rcx up from -len to 0 with both pointers at the ends. */
	addq	%rdx, %rsi
	addq	%rdx, %rdi
	movq	%rdx, %rcx
	negq	%rcx
	cmpq	$-64, %rcx
	jae	.Lcopy_tail
	.p2align 5
.Lcopy_loop:
	movdqu	(%rsi,%rcx), %xmm0
	movdqu	16(%rsi,%rcx), %xmm1
	movdqu	32(%rsi,%rcx), %xmm2
	movdqu	48(%rsi,%rcx), %xmm3
	movdqu	%xmm0, (%rdi,%rcx)
	movdqu	%xmm1, 16(%rdi,%rcx)
	movdqu	%xmm2, 32(%rdi,%rcx)
	movdqu	%xmm3, 48(%rdi,%rcx)
	addq	$64, %rcx
	cmpq	$-64, %rcx
	jb	.Lcopy_loop
.Lcopy_tail:
	/* 1..64 bytes are left, more than 32 were asked for. */
	cmpq	$-32, %rcx
	jae	.Lcopy_last_32
	movdqu	(%rsi,%rcx), %xmm0
	movdqu	16(%rsi,%rcx), %xmm1
	movdqu	%xmm0, (%rdi,%rcx)
	movdqu	%xmm1, 16(%rdi,%rcx)
.Lcopy_last_32:
	movdqu	-32(%rsi), %xmm2
	movdqu	-16(%rsi), %xmm3
	movdqu	%xmm2, -32(%rdi)
	movdqu	%xmm3, -16(%rdi)
	xorl	%eax, %eax
	ret

.Lcopy_rep:
	/*
	 * Its stores may become visible in any order among themselves, but
	 * before every later store; the caller stores the end separately.
	 */
	movq	%rdx, %rcx
	rep movsb
	xorl	%eax, %eax
	ret

.Lcopy_below_16:
	cmpl	$8, %edx
	jb	.Lcopy_below_8
	movq	(%rsi), %rax
	movq	-8(%rsi,%rdx), %rcx
	movq	%rax, (%rdi)
	movq	%rcx, -8(%rdi,%rdx)
	xorl	%eax, %eax
	ret

.Lcopy_below_8:
	cmpl	$4, %edx
	jb	.Lcopy_below_4
	movl	(%rsi), %eax
	movl	-4(%rsi,%rdx), %ecx
	movl	%eax, (%rdi)
	movl	%ecx, -4(%rdi,%rdx)
	xorl	%eax, %eax
	ret

.Lcopy_below_4:
	cmpl	$2, %edx
	jb	.Lcopy_below_2
	movzwl	(%rsi), %eax
	movzwl	-2(%rsi,%rdx), %ecx
	movw	%ax, (%rdi)
	movw	%cx, -2(%rdi,%rdx)
	xorl	%eax, %eax
	ret

.Lcopy_below_2:
	testl	%edx, %edx
	jz	.Lcopy_nothing
	movzbl	(%rsi), %eax
	movb	%al, (%rdi)
.Lcopy_nothing:
	xorl	%eax, %eax
	ret
END(umem_asm_copy)

FUNC(umem_asm_store)
	cmpl	$4, %edx
	je	.Lstore_4
	ja	.Lstore_8
	cmpl	$2, %edx
	je	.Lstore_2
	movzbl	(%rsi), %eax
	movb	%al, (%rdi)
	xorl	%eax, %eax
	ret
.Lstore_2:
	movzwl	(%rsi), %eax
	movw	%ax, (%rdi)
	xorl	%eax, %eax
	ret
.Lstore_4:
	movl	(%rsi), %eax
	movl	%eax, (%rdi)
	xorl	%eax, %eax
	ret
.Lstore_8:
	movq	(%rsi), %rax
	movq	%rax, (%rdi)
	xorl	%eax, %eax
	ret
END(umem_asm_store)

FUNC(umem_asm_cmp_swap)
	movq	%rsi, %rax
	lock cmpxchgq %rdx, (%rdi)
	movq	%rax, (%rcx)
	xorl	%eax, %eax
	ret
END(umem_asm_cmp_swap)

FUNC(umem_asm_fetch_add)
	lock xaddq %rsi, (%rdi)
	movq	%rsi, (%rdx)
	xorl	%eax, %eax
	ret
END(umem_asm_fetch_add)

	.globl	umem_text_end
	.hidden	umem_text_end
umem_text_end:

/* Outside the range: it cannot fault. */
FUNC(umem_landing)
	movl	$-14, %eax	/* -EFAULT */
	ret
END(umem_landing)

/*
 * Debuggers and unwinders know a signal frame by these very bytes when no
 * unwind information covers them, the byte before included.
 */
	.p2align 4
	nop
	.globl	umem_asm_sigreturn
	.hidden	umem_asm_sigreturn
	.type	umem_asm_sigreturn, @function
umem_asm_sigreturn:
	movq	$15, %rax	/* rt_sigreturn */
	syscall
	.size	umem_asm_sigreturn, . - umem_asm_sigreturn

	.section .note.GNU-stack, "", @progbits
