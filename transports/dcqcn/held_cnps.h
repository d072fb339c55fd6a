// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CNPs between the echo of a mark and the cut. Where time is stretched, feedback comes sooner in the papers' time than
// in a network, so CNPs are held back for `cnp_delay_us`. Times are in us on a clock that wraps at 32 bits.
#ifndef ROUNDABOUT_DCQCN_HELD_CNPS_H
#define ROUNDABOUT_DCQCN_HELD_CNPS_H

#include "reaction_point.h"

// Limit on the CNPs that one ACK represents, and on those that act at one ACK. ACKs that are farther apart do not show
// how long the marks lasted.
#define MAX_CNPS 8

// A flow has no room for the time of each CNP, so CNPs between the first and the last are treated as evenly spaced.
struct held_cnps {
  __u32 first_us; // when the oldest CNP arrived
  __u32 last_us;  // when the newest CNP arrived, which may have acted already
  __u16 count;
  bool is_marked; // whether the last ACK echoed a mark
};

// Begins without CNPs, and ready for one.
static __always_inline void held_cnps_begin(struct held_cnps *held, const struct dcqcn_params *p, __u32 now) {
  held->count = 0;
  held->is_marked = 0;
  held->last_us = now - p->cnp_gap_us;
}

// Counts the CNPs of an ACK. A mark is a CNP if there was none in the last `cnp_gap_us`. ACKs in a lab are rarer than
// packets in a network. So if the previous ACK echoed a mark too, one CNP is counted for each `cnp_gap_us` in between.
// Otherwise a flow with more ACKs would be cut more often.
static __always_inline void held_cnps_hear(struct held_cnps *held, const struct dcqcn_params *p, __u32 now,
                                           bool is_marked) {
  bool goes_on = held->is_marked && is_marked;
  __u32 since = now - held->last_us, gap = p->cnp_gap_us, cnps = 1;
  held->is_marked = is_marked;
  if (!is_marked || since < gap)
    return;
  if (goes_on && gap && since / gap <= MAX_CNPS) {
    cnps = since / gap;
    now = held->last_us + cnps * gap;
  }
  if (!held->count)
    held->first_us = now - (cnps - 1) * gap;
  held->last_us = now;
  held->count += cnps;
}

// Takes the CNPs for which no later ACK is likely to be nearer to the end of their delay, and returns their number.
// ACKs come each `spacing` us.
static __always_inline __u32 held_cnps_take(struct held_cnps *held, const struct dcqcn_params *p,
                                            struct dcqcn_counters *c, __u32 now, __u32 spacing) {
  __u32 taken = 0;
  for (; taken < MAX_CNPS && held->count; taken++) {
    __u32 held_us = now - held->first_us;
    if (held_us + spacing / 2 < p->cnp_delay_us)
      break;
    held->count--;
    if (held->count)
      held->first_us += (held->last_us - held->first_us) / held->count;
    c->held_us += held_us;
  }
  return taken;
}

// The reaction point's input from an ACK.
struct ack {
  __u64 bytes; // newly acknowledged
  __u32 now;
  __u32 spacing; // us since the previous ACK
  bool is_marked;
};

// Runs the timers, and cuts the rate for the CNPs that act at an ACK. Returns the rate before the cuts, 0 without one.
FOLLOWED_ONCE __u64 reaction_point_act(struct reaction_point *rp, struct held_cnps *held, const struct dcqcn_params *p,
                                       struct dcqcn_counters *c, const struct ack *ack) {
  if (!rp || !held || !p || !c || !ack)
    return 0;
  reaction_point_run_timers(rp, p, c, ack->now);
  __u32 cnps = held_cnps_take(held, p, c, ack->now, ack->spacing);
  if (!cnps)
    return 0;
  c->cnps += cnps;
  __u64 before = reaction_point_on_cnp(rp, p, ack->now);
  for (__u32 i = 1; i < MAX_CNPS && i < cnps; i++)
    reaction_point_on_cnp(rp, p, ack->now);
  __u32 periods = p->alpha_timer_us ? ack->spacing / p->alpha_timer_us : 0;
  if (rp->heard_cnp && cnps > 1 && periods > 1)
    rp->heard_cnp = cnps < periods ? cnps : periods;
  return before;
}

// Applies an ACK. CNPs whose delay ended in the silence before it act at that time, before the timers advance to now.
// Returns the rate before the cuts if CNPs act at the ACK. Else returns the rate before the cuts in the silence if the
// rate is still lower, and 0 if not.
FOLLOWED_ONCE __u64 reaction_point_on_ack(struct reaction_point *rp, struct held_cnps *held,
                                          const struct dcqcn_params *p, struct dcqcn_counters *c,
                                          const struct ack *ack) {
  if (!rp || !held || !p || !c || !ack)
    return 0;
  __u64 in_silence = 0;
  if (held->count && ack->spacing > p->cnp_delay_us) {
    struct ack silent = {.now = ack->now - ack->spacing + p->cnp_delay_us, .spacing = p->cnp_delay_us};
    in_silence = reaction_point_act(rp, held, p, c, &silent);
  }
  held_cnps_hear(held, p, ack->now, ack->is_marked);
  __u64 before = reaction_point_act(rp, held, p, c, ack);
  if (!before)
    reaction_point_count_bytes(rp, p, c, ack->bytes);
  return before ? before : in_silence > rp->R_C ? in_silence : 0;
}

#endif
