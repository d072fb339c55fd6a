// SPDX-License-Identifier: Apache-2.0
// The algorithms as the transports' programs have them, one function each for Python to call.
#include "dcqcn/reaction_point.h"

void reaction_point_begins(struct reaction_point *rp, const struct dcqcn_params *p, __u32 now) {
  reaction_point_begin(rp, p, now);
}

// What dcqcn/flow.h does with an ACK. Returns whether it was a CNP.
int reaction_point_hears(struct reaction_point *rp, const struct dcqcn_params *p, struct dcqcn_counters *c, __u32 now,
                         int marked, __u32 acked_bytes) {
  reaction_point_run_timers(rp, p, c, now);
  if (marked && reaction_point_hears_cnps(rp, p, now)) {
    reaction_point_on_cnp(rp, p, now);
    return 1;
  }
  reaction_point_count_bytes(rp, p, c, acked_bytes);
  return 0;
}
