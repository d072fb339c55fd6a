// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CNPs between the echo of a mark and the cut. Where time is stretched, feedback comes sooner in the papers' time than
// in a network, so CNPs are held back for `cnp_delay_us`. Times are in us on a clock that wraps at 32 bits.
#ifndef ROUNDABOUT_DCQCN_HELD_CNPS_H
#define ROUNDABOUT_DCQCN_HELD_CNPS_H

#include "reaction_point.h"

// A flow has no room for the time of each CNP: those between the first and the last are taken as evenly spread.
struct held_cnps {
  __u32 first_us; // when the oldest was heard
  __u32 last_us;  // when the newest was heard, whether it has acted or not
  __u32 count;
};

// Begins without CNPs, and ready for one.
static __always_inline void held_cnps_begin(struct held_cnps *held, const struct dcqcn_params *p, __u32 now) {
  held->count = 0;
  held->last_us = now - p->cnp_gap_us;
}

// Hears a mark, which is a CNP if none was heard in the last `cnp_gap_us`.
static __always_inline void held_cnps_hear(struct held_cnps *held, const struct dcqcn_params *p, __u32 now) {
  if (now - held->last_us < p->cnp_gap_us)
    return;
  if (!held->count)
    held->first_us = now;
  held->last_us = now;
  held->count++;
}

// Takes the oldest CNP if no later ACK is likely to be nearer to the end of its delay. ACKs come each `spacing` us.
// Several that are due act at one ACK each, as they were heard.
static __always_inline bool held_cnps_take(struct held_cnps *held, const struct dcqcn_params *p,
                                           struct dcqcn_counters *c, __u32 now, __u32 spacing) {
  __u32 held_us = now - held->first_us;
  if (!held->count || held_us + spacing / 2 < p->cnp_delay_us)
    return 0;
  held->count--;
  if (held->count)
    held->first_us += (held->last_us - held->first_us) / held->count;
  c->held_us += held_us;
  return 1;
}

// Applies an ACK that came `spacing` us after the one before. Returns the rate before the cut if a CNP acted, else 0.
static __always_inline __u64 reaction_point_on_ack(struct reaction_point *rp, struct held_cnps *held,
                                                   const struct dcqcn_params *p, struct dcqcn_counters *c, __u32 now,
                                                   __u32 spacing, bool is_marked, __u64 acked_bytes) {
  reaction_point_run_timers(rp, p, c, now);
  if (spacing >= (__u64)MANY_STAGES * p->T_us) // such a silence brings a flow to the line rate, whatever it had heard
    held->count = 0;
  if (is_marked)
    held_cnps_hear(held, p, now);
  if (held_cnps_take(held, p, c, now, spacing)) {
    c->cnps++;
    return reaction_point_on_cnp(rp, p, now);
  }
  reaction_point_count_bytes(rp, p, c, acked_bytes);
  return 0;
}

#endif
