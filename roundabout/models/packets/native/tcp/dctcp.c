// SPDX-License-Identifier: Apache-2.0
// DCTCP by the eBPF program's headers; what stands here is what transports/dctcp/flow.h and dctcp.bpf.c do with an ACK,
// and mltcp_dctcp.bpf.c with an F.
#include "algorithm.h"

static void begin(struct congestion_control *cc, const struct congestion_plan *plan, struct tcp_view *view) {
  struct dctcp *f = &cc->state.dctcp;
  f->p.g_q24 = plan->g_q24;
  marking_begin(&f->marking, view->delivered, view->delivered_ce, view->snd_nxt);
  cwnd_begin(&f->cwnd, view->cwnd, view->ssthresh);
}

static bool may_grow(const struct dctcp *f, const struct tcp_view *view) {
  if (!cwnd_may_grow(&f->cwnd))
    return 0;
  return view->is_cwnd_limited || (cwnd_in_slow_start(&f->cwnd) && f->cwnd.segments < 2 * view->max_packets_out);
}

static void set_window(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack) {
  struct dctcp *f = &cc->state.dctcp;
  const uint32_t acked = view->delivered - f->delivered, marked = view->delivered_ce - f->delivered_ce;
  f->delivered += acked;
  f->delivered_ce += marked;
  marking_on_ack(&f->marking, &f->p, view->snd_una, view->snd_nxt, view->delivered, view->delivered_ce);
  cwnd_on_ack(&f->cwnd, view->snd_una, view->snd_nxt, view->cwnd);
  const enum reduction asks_for = ack->losses ? LOSS : marked ? MARKS : NOTHING;
  if (cwnd_must_reduce(&f->cwnd, asks_for)) {
    const uint64_t base_q24 = cwnd_cut_q24(&f->cwnd, &f->marking, asks_for);
    cwnd_reduce(&f->cwnd, asks_for, mltcp_cut(cc->member, cwnd_q24(&f->cwnd), base_q24), view->snd_nxt);
  } else if (may_grow(f, view)) {
    const uint32_t left = cwnd_slow_start(&f->cwnd, acked);
    cwnd_add(&f->cwnd, mltcp_acked(cc->member, view->cwnd < view->ssthresh, left));
  }
  view->cwnd = f->cwnd.segments;
  view->ssthresh = f->cwnd.ssthresh;
}

// As the program, which sets the window by itself: the kernel's idea of it stays.
static uint32_t ssthresh(struct congestion_control *cc, const struct tcp_view *view) {
  (void)cc;
  return view->ssthresh;
}

static uint32_t alpha_q24(const struct congestion_control *cc) { return cc->state.dctcp.marking.alpha_q24; }

const struct algorithm dctcp_algorithm = {
    .owns_window = 1,
    .needs_accurate_echo = 1,
    .begin = begin,
    .set_window = set_window,
    .ssthresh = ssthresh,
    .alpha_q24 = alpha_q24,
};
