/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_aarch64.S - accesses to user memory that may fault; see umem_asm.h.
 *
 * Arguments: x0, x1, x2, x3. No stack, no callee-saved register, x30 untouched.
 */

#define FUNC(name)                                                            \
	.globl	name;                                                         \
	.hidden	name;                                                         \
	.type	name, %function;                                              \
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
	add	x3, x1, x2		/* ends */
	add	x4, x0, x2
	cmp	x2, #16
	b.lo	.Lcopy_below_16
	cmp	x2, #32
	b.hi	.Lcopy_above_32
	ldr	q0, [x1]
	ldur	q1, [x3, #-16]
	str	q0, [x0]
	stur	q1, [x4, #-16]
	mov	w0, #0
	ret

.Lcopy_above_32:
	subs	x2, x2, #64
	b.ls	.Lcopy_tail
.Lcopy_loop:
	ldp	q0, q1, [x1]
	ldp	q2, q3, [x1, #32]
	stp	q0, q1, [x0]
	stp	q2, q3, [x0, #32]
	add	x1, x1, #64
	add	x0, x0, #64
	subs	x2, x2, #64
	b.hi	.Lcopy_loop
.Lcopy_tail:
	/* x2 + 64 = 1..64 bytes are left, more than 32 were asked for. */
	cmn	x2, #32
	b.le	.Lcopy_last_32
	ldp	q0, q1, [x1]
	stp	q0, q1, [x0]
.Lcopy_last_32:
	ldp	q2, q3, [x3, #-32]
	stp	q2, q3, [x4, #-32]
	mov	w0, #0
	ret

.Lcopy_below_16:
	tbz	x2, #3, .Lcopy_below_8
	ldr	x5, [x1]
	ldur	x6, [x3, #-8]
	str	x5, [x0]
	stur	x6, [x4, #-8]
	mov	w0, #0
	ret

.Lcopy_below_8:
	tbz	x2, #2, .Lcopy_below_4
	ldr	w5, [x1]
	ldur	w6, [x3, #-4]
	str	w5, [x0]
	stur	w6, [x4, #-4]
	mov	w0, #0
	ret

.Lcopy_below_4:
	tbz	x2, #1, .Lcopy_below_2
	ldrh	w5, [x1]
	ldurh	w6, [x3, #-2]
	strh	w5, [x0]
	sturh	w6, [x4, #-2]
	mov	w0, #0
	ret

.Lcopy_below_2:
	cbz	x2, .Lcopy_nothing
	ldrb	w5, [x1]
	strb	w5, [x0]
.Lcopy_nothing:
	mov	w0, #0
	ret
END(umem_asm_copy)

FUNC(umem_asm_store)
	tbnz	x2, #3, .Lstore_8
	tbnz	x2, #2, .Lstore_4
	tbnz	x2, #1, .Lstore_2
	ldrb	w5, [x1]
	strb	w5, [x0]
	mov	w0, #0
	ret
.Lstore_2:
	ldrh	w5, [x1]
	strh	w5, [x0]
	mov	w0, #0
	ret
.Lstore_4:
	ldr	w5, [x1]
	str	w5, [x0]
	mov	w0, #0
	ret
.Lstore_8:
	ldr	x5, [x1]
	str	x5, [x0]
	mov	w0, #0
	ret
END(umem_asm_store)

FUNC(umem_asm_cmp_swap)
.Lcas_again:
	ldaxr	x5, [x0]
	cmp	x5, x1
	b.ne	.Lcas_differs
	stlxr	w6, x2, [x0]
	cbnz	w6, .Lcas_again
	dmb	ish
	str	x5, [x3]
	mov	w0, #0
	ret
.Lcas_differs:
	/* Like the hardware's, a failed one still needs write permission. */
	stlxr	w6, x5, [x0]
	cbnz	w6, .Lcas_again
	dmb	ish
	str	x5, [x3]
	mov	w0, #0
	ret
END(umem_asm_cmp_swap)

FUNC(umem_asm_fetch_add)
.Ladd_again:
	ldaxr	x5, [x0]
	add	x6, x5, x1
	stlxr	w7, x6, [x0]
	cbnz	w7, .Ladd_again
	dmb	ish
	str	x5, [x2]
	mov	w0, #0
	ret
END(umem_asm_fetch_add)

	.globl	umem_text_end
	.hidden	umem_text_end
umem_text_end:

/* Outside the range: it cannot fault. */
FUNC(umem_landing)
	mov	w0, #-14		/* -EFAULT */
	ret
END(umem_landing)

/* Unwinders know a signal frame by these instructions. */
	.p2align 4
	nop
	.globl	umem_asm_sigreturn
	.hidden	umem_asm_sigreturn
	.type	umem_asm_sigreturn, %function
umem_asm_sigreturn:
	mov	x8, #139		/* rt_sigreturn */
	svc	#0
	.size	umem_asm_sigreturn, . - umem_asm_sigreturn

	.section .note.GNU-stack, "", %progbits
