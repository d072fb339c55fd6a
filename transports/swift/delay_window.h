// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift's congestion window (SIGCOMM'20, Algorithm 1), in packets: it grows by `ai` in a round trip while delays are
// below the target, and shrinks at most once in a round trip by how far a delay is above it. Two points differ from the
// printed algorithm, as in csg-htsim: an ACK that leaves the window as it is does not delay the next decrease, and the
// round trip is a smoothed one. Times are those of target_delay.h.
#ifndef ROUNDABOUT_SWIFT_DELAY_WINDOW_H
#define ROUNDABOUT_SWIFT_DELAY_WINDOW_H

#include "target_delay.h"

struct swift_flow {
  struct target_delay target;
  __u64 cwnd_q24; // packets
  __u64 rtt;      // smoothed, 0: none yet
  __u64 decreased_at;
  __u32 timeouts; // in a row
};

static __always_inline void swift_begin(struct swift_flow *f, const struct swift_params *p, __u32 links, __u64 now) {
  *f = (struct swift_flow){.cwnd_q24 = (__u64)p->initial_cwnd << 24, .decreased_at = now};
  target_delay_begin(&f->target, p, links);
}

static __always_inline bool swift_may_decrease(const struct swift_flow *f, __u64 now) {
  return now - f->decreased_at >= f->rtt;
}

// Sets the window between its limits. A smaller window than before is a decrease.
static __always_inline void swift_set_window(struct swift_flow *f, const struct swift_params *p, __u64 cwnd_q24,
                                             __u64 now) {
  __u64 most_q24 = (__u64)p->max_cwnd << 24, before_q24 = f->cwnd_q24;
  if (cwnd_q24 < p->min_cwnd_q24)
    cwnd_q24 = p->min_cwnd_q24;
  f->cwnd_q24 = cwnd_q24 < most_q24 ? cwnd_q24 : most_q24;
  if (f->cwnd_q24 < before_q24)
    f->decreased_at = now;
}

// Returns the window after acknowledged packets, whose number times ai must be below 2^16.
static __always_inline __u64 swift_increased(const struct swift_flow *f, const struct swift_params *p,
                                             __u64 acked_q24) {
  __u64 by_q24 = times_q24(acked_q24, p->ai_q24);
  return f->cwnd_q24 + (f->cwnd_q24 >= ONE_Q24 ? (by_q24 << 24) / f->cwnd_q24 : by_q24);
}

// Returns the window after a cut by this share of it.
static __always_inline __u64 swift_cut(const struct swift_flow *f, __u32 share) {
  return f->cwnd_q24 - times_q24(f->cwnd_q24, share);
}

// Smooths round-trip times with TCP's weight of 1/8 (RFC 6298).
static __always_inline void swift_smooth(struct swift_flow *f, __u64 delay) {
  f->rtt = f->rtt ? f->rtt - f->rtt / 8 + delay / 8 : delay;
}

// Applies an ACK of `acked_q24` packets, which came `delay` after the newest of them was sent.
static __always_inline void swift_on_ack(struct swift_flow *f, const struct swift_params *p, struct swift_counters *c,
                                         __u64 now, __u64 delay, __u64 acked_q24) {
  bool may_decrease = swift_may_decrease(f, now);
  __u64 target = target_delay_at(&f->target, p, f->cwnd_q24);
  swift_smooth(f, delay);
  f->timeouts = 0;
  if (delay < target) {
    c->increases++;
    swift_set_window(f, p, swift_increased(f, p, acked_q24), now);
  } else if (may_decrease) {
    __u32 by_q24 = (__u32)times_q24(share_q24(delay - target, delay), p->beta_q24);
    c->decreases++;
    swift_set_window(f, p, swift_cut(f, by_q24 < p->max_mdf_q24 ? by_q24 : p->max_mdf_q24), now);
  }
}

// Applies losses that ACKs of later packets revealed.
static __always_inline void swift_on_loss(struct swift_flow *f, const struct swift_params *p, struct swift_counters *c,
                                          __u64 now) {
  f->timeouts = 0;
  if (!swift_may_decrease(f, now))
    return;
  c->losses++;
  swift_set_window(f, p, swift_cut(f, p->max_mdf_q24), now);
}

// Applies a retransmission timeout.
static __always_inline void swift_on_timeout(struct swift_flow *f, const struct swift_params *p,
                                             struct swift_counters *c, __u64 now) {
  f->timeouts++;
  if (f->timeouts >= p->retx_reset)
    swift_set_window(f, p, p->min_cwnd_q24, now);
  else if (swift_may_decrease(f, now))
    swift_set_window(f, p, swift_cut(f, p->max_mdf_q24), now);
  else
    return;
  c->losses++;
}

// Returns the time between two packets of a flow whose window is below one packet, and 0 for others.
static __always_inline __u64 swift_pacing_delay(const struct swift_flow *f) {
  return f->cwnd_q24 < ONE_Q24 ? (f->rtt << 24) / f->cwnd_q24 : 0;
}

#endif
