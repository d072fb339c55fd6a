// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rate at which Linux must pace a burst so that it leaves when a NIC would have sent it. Linux fixes the time of
// the next burst when it sends one. A NIC's rate limiter follows R_C, which rises with each period of the timer.
// Without this correction, a burst in a lab would wait for seconds at the lowest rate of NVIDIA's NICs.
#ifndef ROUNDABOUT_DCQCN_BURST_RATE_H
#define ROUNDABOUT_DCQCN_BURST_RATE_H

#include "reaction_point.h"

#define STAGES_AHEAD 16 // periods of the timer that are computed ahead; later ones keep the last rate

// Returns the mean rate, in bytes/s, at which `bytes` leave from `now` on if no CNP comes: R_C, unless its timer raises
// it before they have left. `rp` is changed.
FOLLOWED_ONCE __u64 burst_rate(struct reaction_point *rp, const struct dcqcn_params *p, __u32 now, __u32 bytes) {
  struct dcqcn_counters not_counted = {0};
  if (!rp || !p)
    return 0;
  __u64 rate = rp->R_C, left = (__u64)bytes * US_PER_S;
  __u32 waited_us = 0, until_us = p->T_us - (now - rp->increased_us);

  for (int i = 0; i < STAGES_AHEAD && rp->R_C * until_us < left; i++) {
    left -= rp->R_C * until_us;
    waited_us += until_us;
    until_us = p->T_us;
    reaction_point_next_stage(rp, p, &not_counted);
  }
  if (waited_us)
    rate = (__u64)bytes * US_PER_S / (waited_us + left / rp->R_C);
  return rate;
}

#endif
