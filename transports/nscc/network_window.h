// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC's congestion window, in bytes (Ultra Ethernet specification 1.0; uet-htsim, htsim/sim/uec.cpp). A mark and the
// queuing delay together choose one of four reactions to an ACK; quick adapt sets the window to what has arrived in a
// round trip when the queue is far too long. Times are in ns; the parameters' `_us` members are in ns, too.
#ifndef ROUNDABOUT_NSCC_NETWORK_WINDOW_H
#define ROUNDABOUT_NSCC_NETWORK_WINDOW_H

#include "scaling.h"

#define DELAY_WEIGHT_Q24 209715  // 0.0125: of a delay in the average
#define FAST_BELOW_NS 1000       // queuing delay that counts as none
#define QUICK_ADAPT_TARGETS 4    // targets of delay beyond which quick adapt acts
#define ADJUST_PACKETS 8         // increases are applied together, after so many packets or a network's round trip
#define LEAST_KEPT_Q24 (1 << 23) // share of the window that a decrease leaves, at least

struct nscc_flow {
  struct nscc_scaling scaling;
  __u64 cwnd, max_cwnd;
  __u64 base_rtt; // the shortest round trip so far
  __u64 average_delay_q16;
  __u64 increase;   // square bytes: over the window, it is what the window grows by at the next adjustment
  __u64 received;   // since the last adjustment
  __u64 achieved;   // since quick adapt last looked
  __u64 ignored;    // since quick adapt last acted
  __u64 to_ignore;  // bytes whose marks are about the queue before quick adapt acted
  __u64 fast_bytes; // in a row without a queue
  __u64 adapt_at;   // when quick adapt looks next, 0: at the first ACK
  __u64 decreased_at, adjusted_at;
  bool is_fast, must_adapt;
};

// An acknowledgement. `bytes` are new, and `in_flight` remain.
struct nscc_ack {
  __u64 now, rtt, bytes, in_flight;
  bool is_marked;
};

static __always_inline void nscc_set_base_rtt(struct nscc_flow *f, const struct nscc_params *p, __u64 rtt) {
  __u64 bdp = bytes_in(p->line, rtt);
  f->base_rtt = rtt;
  f->max_cwnd = bdp + bdp / 2;
}

// `path_rtt` is the round trip of the flow's path without queues.
static __always_inline void nscc_begin(struct nscc_flow *f, const struct nscc_params *p, __u32 packet_bytes,
                                       __u64 path_rtt) {
  *f = (struct nscc_flow){0};
  nscc_scale(&f->scaling, p, packet_bytes, path_rtt);
  nscc_set_base_rtt(f, p, path_rtt);
  f->cwnd = p->initial_cwnd ? (__u64)p->initial_cwnd * packet_bytes : f->max_cwnd;
}

static __always_inline void nscc_limit(struct nscc_flow *f) {
  if (f->cwnd > f->max_cwnd)
    f->cwnd = f->max_cwnd;
  if (f->cwnd < f->scaling.packet_bytes)
    f->cwnd = f->scaling.packet_bytes;
}

// Averages the queuing delay. A long delay without a mark is of a queue that has drained since, and so counts as a
// quarter of the shortest round trip.
static __always_inline void nscc_average(struct nscc_flow *f, __u64 delay, bool is_marked) {
  __u64 counted = !is_marked && delay > f->scaling.target ? f->base_rtt / 4 : delay;
  f->average_delay_q16 -= times_q24(f->average_delay_q16, DELAY_WEIGHT_Q24);
  f->average_delay_q16 += times_q24(counted << 16, DELAY_WEIGHT_Q24);
}

// Sets the window to what has arrived in a round trip, if the queue is far too long. Returns true if it did so, or if
// this ACK is of a packet that was sent before.
static __always_inline bool nscc_quick_adapt(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c,
                                             const struct nscc_ack *ack, __u64 delay, bool is_loss) {
  bool is_done = 0;
  if (f->ignored < f->to_ignore && ack->is_marked) {
    is_done = 1;
  } else if (ack->now > f->adapt_at) {
    bool is_long = f->must_adapt || is_loss || delay > QUICK_ADAPT_TARGETS * f->scaling.target;
    if (f->adapt_at && is_long && f->achieved < f->max_cwnd >> p->qa_gate) {
      f->cwnd = f->achieved > f->scaling.packet_bytes ? f->achieved : f->scaling.packet_bytes;
      f->to_ignore = ack->in_flight;
      f->ignored = 0;
      f->must_adapt = 0;
      c->quick_adapts++;
      is_done = 1;
    }
    f->achieved = 0;
    f->adapt_at = ack->now + f->base_rtt + f->scaling.target;
  }
  if (is_done)
    f->increase = f->received = 0;
  return is_done;
}

// Grows the window at once after a window of bytes without a queue. Returns true if it did so.
static __always_inline bool nscc_fast_increase(struct nscc_flow *f, __u64 bytes, __u64 delay) {
  if (delay >= FAST_BELOW_NS) {
    f->fast_bytes = 0;
    f->is_fast = 0;
    return 0;
  }
  f->fast_bytes += bytes;
  f->is_fast = f->is_fast || f->fast_bytes > f->cwnd;
  if (f->is_fast)
    f->cwnd += times_q24(bytes, f->scaling.fast_q24);
  return f->is_fast;
}

static __always_inline void nscc_increase(struct nscc_flow *f, struct nscc_counters *c, __u64 bytes, __u64 delay) {
  const struct nscc_scaling *s = &f->scaling;
  if (delay >= s->target) {
    c->fair_increases++;
    f->increase += s->fair * bytes;
  } else if (nscc_fast_increase(f, bytes, delay)) {
    c->fast_increases++;
  } else {
    c->proportional_increases++;
    f->increase += times_q24(s->proportional * bytes, share_q24(s->target - delay, s->target));
  }
}

// Cuts the window by the average delay, at most once in a round trip.
static __always_inline void nscc_decrease(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c,
                                          __u64 now) {
  __u64 average = f->average_delay_q16 >> 16, target = f->scaling.target;
  f->is_fast = 0;
  f->fast_bytes = 0;
  if (average <= target || now - f->decreased_at <= f->base_rtt)
    return;
  __u32 cut_q24 = (__u32)times_q24(share_q24(average - target, average), p->gamma_q24);
  f->cwnd = times_q24(f->cwnd, cut_q24 < LEAST_KEPT_Q24 ? ONE_Q24 - cut_q24 : LEAST_KEPT_Q24);
  f->decreased_at = now;
  c->decreases++;
}

// Applies collected increases.
static __always_inline void nscc_adjust(struct nscc_flow *f, __u64 now) {
  __u64 since = now - f->adjusted_at, period = f->scaling.rtt;
  if (f->received <= (__u64)ADJUST_PACKETS * f->scaling.packet_bytes && since <= period)
    return;
  f->cwnd += f->increase / f->cwnd;
  if (since >= period) {
    f->cwnd += f->scaling.eta;
    f->adjusted_at = now;
  }
  f->increase = f->received = 0;
}

static __always_inline void nscc_on_ack(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c,
                                        const struct nscc_ack *ack) {
  f->achieved += ack->bytes;
  f->received += ack->bytes;
  f->ignored += ack->bytes;
  if (ack->rtt < f->base_rtt)
    nscc_set_base_rtt(f, p, ack->rtt);
  __u64 delay = ack->rtt - f->base_rtt;
  nscc_average(f, delay, ack->is_marked);
  if (nscc_quick_adapt(f, p, c, ack, delay, 0))
    return;
  if (!ack->is_marked)
    nscc_increase(f, c, ack->bytes, delay);
  else if (delay >= f->scaling.target)
    nscc_decrease(f, p, c, ack->now);
  nscc_limit(f);
  nscc_adjust(f, ack->now);
  nscc_limit(f);
}

// Applies a lost packet of `bytes`, of which ACKs of later packets or a trimmed packet's NACK report. The queue that
// lost it counts as one of a network's round trip.
static __always_inline void nscc_on_loss(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c,
                                         __u64 now, __u64 bytes, __u64 in_flight) {
  struct nscc_ack ack = {.now = now, .in_flight = in_flight, .is_marked = 1};
  c->losses++;
  f->ignored += bytes;
  nscc_average(f, f->scaling.rtt, 1);
  f->must_adapt = 1;
  if (nscc_quick_adapt(f, p, c, &ack, 0, 1))
    return;
  f->cwnd = f->cwnd > bytes ? f->cwnd - bytes : 0;
  nscc_limit(f);
}

// Applies a retransmission timeout of a packet of `bytes`.
static __always_inline void nscc_on_timeout(struct nscc_flow *f, struct nscc_counters *c, __u64 bytes) {
  c->losses++;
  f->cwnd = f->cwnd > bytes ? f->cwnd - bytes : 0;
  nscc_limit(f);
}

#endif
