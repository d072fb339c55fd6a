// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP's F(bytes_ratio), and its effect on increases and decreases (interleaving thesis, chapter 5 and section 1.2).
// Each shape goes from intercept to intercept + slope: with the published numbers, 1.75 r + 0.25, 1.75 r^2 + 0.25 and 1
// / (-3.5 r + 4).
#ifndef ROUNDABOUT_MLTCP_AGGRESSIVENESS_H
#define ROUNDABOUT_MLTCP_AGGRESSIVENESS_H

#include "iteration.h"

// Returns F at a bytes_ratio, by the shape, slope and intercept of the parameters.
static __always_inline __u32 aggressiveness_at(const struct mltcp_params *p, __u32 ratio_q24) {
  __u64 first = p->intercept_q24, last = first + p->slope_q24, rest_q24 = ONE_Q24 - ratio_q24;
  switch (p->shape) {
  case QUADRATIC:
    return (__u32)(first + times_q24(times_q24(p->slope_q24, ratio_q24), ratio_q24));
  case RECIPROCAL:
    return (__u32)(first * last / (first + times_q24(p->slope_q24, (__u32)rest_q24)));
  case DECREASING:
    return (__u32)(last - times_q24(p->slope_q24, ratio_q24));
  default:
    return (__u32)(first + times_q24(p->slope_q24, ratio_q24));
  }
}

// Returns F of a job. While its iterations are unknown F is 1, so the job behaves like its base transport.
static __always_inline __u32 aggressiveness_of(const struct iteration *it, const struct mltcp_params *p) {
  return iteration_bytes(it, p) ? aggressiveness_at(p, iteration_ratio_q24(it, p)) : ONE_Q24;
}

// Returns F times an increase, rounded down; the rounding remainder is carried to the next increase.
static __always_inline __u32 aggressiveness_increase(__u32 by, __u32 F_q24, __u32 *carried_q24) {
  __u64 exactly_q24 = (__u64)by * F_q24 + *carried_q24;
  *carried_q24 = exactly_q24 & (ONE_Q24 - 1);
  return (__u32)(exactly_q24 >> 24);
}

// Returns what remains after a decrease that is 1 / F of the base's. It is at least an eighth of `before`, a guess for
// deep cuts with a small F.
static __always_inline __u64 aggressiveness_decrease(__u64 before, __u64 after, __u32 F_q24) {
  __u64 most = before - before / 8;
  __u64 cut = times_q24(before - after, (__u32)(((__u64)ONE_Q24 << 24) / F_q24));
  return before - (cut < most ? cut : most);
}

#endif
