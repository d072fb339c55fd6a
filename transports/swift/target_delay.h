// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift's target delay (SIGCOMM'20, section 3.5): a base, a part for each link of the path, and flow scaling, a part
// that grows as a flow's window shrinks, because many flows at one port make a longer queue. Times count in one unit,
// which is also that of the parameters' `_us` members.
#ifndef ROUNDABOUT_SWIFT_TARGET_DELAY_H
#define ROUNDABOUT_SWIFT_TARGET_DELAY_H

#include "swift_params.h"

struct target_delay {
  __u64 path;      // without flow scaling
  __u64 least_q24; // 1 / sqrt(fs_max_cwnd)
  __u64 span_q24;  // 1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)
};

// Returns the square root, rounded down, digit by digit.
static __always_inline __u64 square_root(__u64 value) {
  __u64 root = 0;
  for (__u64 digit = 1ULL << 62; digit; digit >>= 2) {
    __u64 tried = root + digit;
    root >>= 1;
    if (value >= tried) {
      value -= tried;
      root += digit;
    }
  }
  return root;
}

// Returns 1 / sqrt of a window in packets, which must be below 2^16.
static __always_inline __u64 inverse_root_q24(__u64 cwnd_q24) { return (1ULL << 48) / square_root(cwnd_q24 << 24); }

static __always_inline void target_delay_begin(struct target_delay *target, const struct swift_params *p, __u32 links) {
  target->path = p->base_target_us + (__u64)links * p->hop_us;
  target->least_q24 = inverse_root_q24(p->fs_max_cwnd_q24);
  target->span_q24 = inverse_root_q24(p->fs_min_cwnd_q24) - target->least_q24;
}

// Returns the target delay of a flow with this window, in packets.
static __always_inline __u64 target_delay_at(const struct target_delay *target, const struct swift_params *p,
                                             __u64 cwnd_q24) {
  __u64 at_q24 = inverse_root_q24(cwnd_q24);
  if (at_q24 <= target->least_q24)
    return target->path;
  if (at_q24 - target->least_q24 >= target->span_q24)
    return target->path + p->fs_range_us;
  return target->path + times_q24(p->fs_range_us, share_q24(at_q24 - target->least_q24, target->span_q24));
}

#endif
