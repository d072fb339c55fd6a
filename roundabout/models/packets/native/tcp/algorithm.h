/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of congestion control algorithms, and MLTCP's changes to each of them. */
#ifndef ROUNDABOUT_PACKETS_ALGORITHM_H
#define ROUNDABOUT_PACKETS_ALGORITHM_H

#include "congestion_control.h"
#include "mltcp_member.h"

#include "dctcp/cwnd.h"

#define MIN_SSTHRESH 2u

struct reno {
  uint32_t credit; /* acknowledged since the last increase */
};

struct cubic {
  uint32_t W_max, W_est, origin; /* RFC 9438, section 4.1, in whole segments */
  double K_s;
  int64_t epoch_tick;                /* when this stage of congestion avoidance began; below 0: not yet */
  uint32_t acks_per_segment, credit; /* segments acknowledged for one more in the window, and those so far */
  uint32_t acked;                    /* since W_est last grew */
  uint32_t last_window;              /* when acks_per_segment was last looked up */
  int64_t last_tick;
  uint32_t uses_hystart;
  struct {
    int64_t round_ps, ack_ps, min_ps, round_min_ps;
    uint32_t end_seq, samples, has_found;
  } hystart;
};

struct dctcp {
  struct dctcp_params p;
  struct marking marking;
  struct cwnd cwnd;
  uint32_t delivered, delivered_ce;
};

struct algorithm {
  uint32_t owns_window, needs_accurate_echo;
  void (*begin)(struct congestion_control *cc, const struct congestion_plan *plan, struct tcp_view *view);
  void (*on_ack)(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack);
  void (*set_window)(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack);
  void (*increase)(struct congestion_control *cc, struct tcp_view *view, uint32_t acked);
  uint32_t (*ssthresh)(struct congestion_control *cc, const struct tcp_view *view);
  void (*on_timeout)(struct congestion_control *cc, struct tcp_view *view);
  void (*on_idle)(struct congestion_control *cc, struct tcp_view *view, int64_t idle_ps);
  uint32_t (*alpha_q24)(const struct congestion_control *cc);
};

struct congestion_control {
  const struct algorithm *algorithm;
  struct mltcp_member *member; /* NULL: not MLTCP */
  union {
    struct reno reno;
    struct cubic cubic;
    struct dctcp dctcp;
  } state;
};

extern const struct algorithm reno_algorithm, cubic_algorithm, dctcp_algorithm;

/* Linux' tcp_is_cwnd_limited: only a window that is used grows; in slow start half of it is enough. */
static inline int is_window_used(const struct tcp_view *view) {
  return view->is_cwnd_limited || (view->cwnd < view->ssthresh && view->cwnd < 2 * view->max_packets_out);
}

/* Returns the segments that slow start leaves of those that were acknowledged (RFC 5681, section 3.1). */
static inline uint32_t slow_start(struct tcp_view *view, uint32_t acked) {
  if (view->cwnd >= view->ssthresh)
    return acked;
  const uint32_t room = view->ssthresh - view->cwnd, used = acked < room ? acked : room;
  view->cwnd += used;
  return acked - used;
}

/* Grows the window by one for each `acks` acknowledged segments. What is left counts next time, but for no more than
 * one once fewer are enough (Linux' tcp_cong_avoid_ai). */
static inline void grow(struct tcp_view *view, uint32_t *credit, uint32_t acks, uint32_t acked) {
  if (*credit >= acks) {
    *credit = 0;
    view->cwnd++;
  }
  *credit += acked;
  if (*credit < acks)
    return;
  view->cwnd += *credit / acks;
  *credit %= acks;
}

#endif
