/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/uc/uc_rsp.h"

#include "base/mutant.h"
#include "core/obj/hca_priv.h"
#include "core/obj/mkey.h"
#include "core/uc/uc_qp.h"

void uc_rsp_start(struct uc_rsp *r, struct psn expected)
{
	*r = (struct uc_rsp){ .state = UC_RSP_IDLE, .expected = expected };
}

/* The message is lost; the receive WQE it had, if any, serves the next. */
static void abandon(struct uc_rsp *r)
{
	r->state = UC_RSP_IDLE;
	r->off = MUTANT(uc_offset_kept) ? r->off : 0;
}

#define DROP(qp, counter)                                                      \
	do {                                                                   \
		HCA_COUNT((qp)->hca, counter);                                 \
		abandon(&uc_of(qp)->rsp);                                      \
	} while (0)

/* Does the packet continue the message that is under way, or begin one? A
 * gap is noticed here, and the packet after it is taken if it begins a
 * message. */
static bool in_sequence(struct qp *qp, const struct pkt *pkt)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	bool gap = !psn_eq(pkt->bth.psn, r->expected);
	uint16_t flags = pkt->info->flags;
	enum uc_rsp_state want =
		flags & OPCODE_SEND ? UC_RSP_SEND : UC_RSP_WRITE;

	r->expected = psn_add(pkt->bth.psn, 1);
	if (flags & OPCODE_START) {
		abandon(r);
		return true;
	}
	if ((gap && !MUTANT(uc_gap_accepted)) || r->state != want) {
		DROP(qp, rx_drop_out_of_seq);
		return false;
	}
	return true;
}

/* FIRST and MIDDLE are full, LAST has at least a byte [IBA 9.8.2.2.3, bug log
 * B020]; a WRITE has as many bytes as its RETH says. */
static bool length_ok(struct qp *qp, const struct pkt *pkt)
{
	const struct uc_rsp *r = &uc_of(qp)->rsp;
	uint32_t n = pkt->payload_bytes;
	uint16_t flags = pkt->info->flags;

	if (n > qp->mtu || (!(flags & OPCODE_END) && n != qp->mtu))
		return false;
	if ((flags & OPCODE_END) && !(flags & OPCODE_START) && n == 0)
		return false;
	if (flags & OPCODE_WRITE) {
		uint32_t left = r->write.len_bytes - r->off;

		return flags & OPCODE_END ? n == left : n < left;
	}
	return n <= qp->hca->cfg.limits.max_msg_bytes - r->off;
}

static bool begin(struct qp *qp, const struct pkt *pkt)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;

	if (pkt->info->flags & OPCODE_SEND) {
		r->state = UC_RSP_SEND;
		return true;
	}
	r->state = UC_RSP_WRITE;
	r->write = pkt->ext.reth;
	return r->write.len_bytes <= qp->hca->cfg.limits.max_msg_bytes;
}

static void complete(struct qp *qp, const struct pkt *pkt,
		     enum wc_status status)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	bool write = pkt->info->flags & OPCODE_WRITE;
	bool imm = pkt->info->exth & EXTH_IMMDT;
	struct wc wc = { .status = status,
			 .opcode = write ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
			 .byte_len = r->off,
			 .src_qpn = qp->attr.dest_qpn };

	if (imm) {
		wc.wc_flags |= WC_WITH_IMM;
		wc.imm_be_or_rkey = __builtin_bswap32(pkt->ext.immdt);
	}
	qp_complete_recv(qp, &wc, pkt->bth.solicited);
}

static void finish(struct qp *qp, const struct pkt *pkt)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	struct hca *hca = qp->hca;

	HCA_ADD(hca, rsp_msg_bytes, r->off);
	if (pkt->info->flags & OPCODE_WRITE)
		HCA_COUNT(hca, rsp_write_msgs);
	else
		HCA_COUNT(hca, rsp_send_msgs);
	if (pkt->info->flags & OPCODE_RECV_WQE)
		complete(qp, pkt, WC_SUCCESS);
	abandon(r);
}

/* False: dropped, or the QP failed. */
static bool take_send(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	const struct rwqe *w = qp_recv_wqe(qp);
	enum wc_status status;

	if (!w) {
		DROP(qp, rx_drop_no_wqe);
		return false;
	}
	status = rwqe_scatter(qp->hca, qp_recv_pd(qp), w, r->off,
			      pkt->payload_bytes, pkt->payload);
	if (status == WC_SUCCESS)
		return true;
	if (status == WC_LOC_LEN_ERR) {
		DROP(qp, rx_drop_len);
		return false;
	}
	HCA_COUNT(qp->hca, local_errors);
	complete(qp, pkt, status);
	abandon(r);
	qp_error(qp, now_ns);
	return false;
}

static bool take_write(struct qp *qp, const struct pkt *pkt)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	struct hca *hca = qp->hca;
	uint64_t va, addr = r->write.va + r->off;
	uint32_t n = pkt->payload_bytes;

	/* Length zero touches nothing: any key will do (bug log B013). */
	if (n && (!(qp->attr.access & ACCESS_REMOTE_WRITE) ||
		  !mkey_remote(qp, qp->pd, r->write.rkey, r->write.va,
			       r->write.len_bytes, ACCESS_REMOTE_WRITE, &va) ||
		  !mkey_remote(qp, qp->pd, r->write.rkey, addr, n,
			       ACCESS_REMOTE_WRITE, &va) ||
		  hca->ops->mem_write(hca->ops_ctx, va, pkt->payload, n))) {
		DROP(qp, rx_drop_access);
		return false;
	}
	if ((pkt->info->flags & OPCODE_RECV_WQE) && !qp_recv_wqe(qp)) {
		DROP(qp, rx_drop_no_wqe);
		return false;
	}
	return true;
}

void uc_rsp_rx(struct qp *qp, const struct rx_frame *f, const struct pkt *pkt,
	       int64_t now_ns)
{
	struct uc_rsp *r = &uc_of(qp)->rsp;
	bool taken;

	(void)f;
	qp_comm_est(qp);
	if (!in_sequence(qp, pkt))
		return;
	if (((pkt->info->flags & OPCODE_START) && !begin(qp, pkt)) ||
	    !length_ok(qp, pkt)) {
		DROP(qp, rx_drop_len);
		return;
	}
	if (pkt->info->flags & OPCODE_SEND)
		taken = take_send(qp, pkt, now_ns);
	else
		taken = take_write(qp, pkt);
	if (!taken)
		return;
	HCA_ADD(qp->hca, rx_payload_bytes, pkt->payload_bytes);
	r->off += pkt->payload_bytes;
	if (pkt->info->flags & OPCODE_END)
		finish(qp, pkt);
}
