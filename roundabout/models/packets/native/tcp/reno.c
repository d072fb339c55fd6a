// SPDX-License-Identifier: Apache-2.0
// Reno's window (RFC 5681, section 3.1), as Linux' tcp_reno_cong_avoid counts.
#include "algorithm.h"

static void begin(struct congestion_control *cc, const struct congestion_plan *plan, struct tcp_view *view) {
  (void)plan;
  (void)view;
  cc->state.reno.credit = 0;
}

static void increase(struct congestion_control *cc, struct tcp_view *view, uint32_t acked) {
  struct reno *reno = &cc->state.reno;
  if (!is_window_used(view))
    return;
  acked = slow_start(view, acked);
  if (acked)
    grow(view, &reno->credit, view->cwnd, acked);
}

static uint32_t ssthresh(struct congestion_control *cc, const struct tcp_view *view) {
  cc->state.reno.credit = 0;
  return view->cwnd / 2;
}

const struct algorithm reno_algorithm = {.begin = begin, .increase = increase, .ssthresh = ssthresh};
