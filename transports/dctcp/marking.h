// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP's estimate of how much of its traffic is marked (RFC 8257, section 3.3), and its cut (section 3.4).
#ifndef ROUNDABOUT_DCTCP_MARKING_H
#define ROUNDABOUT_DCTCP_MARKING_H

#include "dctcp_params.h"

struct marking {
  __u32 alpha_q24;
  __u32 delivered; // total when the window of data began
  __u32 delivered_ce;
  __u32 window_end; // a sequence number
};

// Begins with alpha 1, because without knowledge of marks the worst is assumed (section 3.3).
static __always_inline void marking_begin(struct marking *m, __u32 delivered, __u32 delivered_ce, __u32 sent) {
  m->alpha_q24 = ONE_Q24;
  m->delivered = delivered;
  m->delivered_ce = delivered_ce;
  m->window_end = sent;
}

// Updates alpha once all data in flight at the window's begin are acknowledged, and returns true then. Counts and
// sequence numbers wrap.
static __always_inline bool marking_on_ack(struct marking *m, const struct dctcp_params *p, __u32 acknowledged,
                                           __u32 sent, __u32 delivered, __u32 delivered_ce) {
  __u32 segments = delivered - m->delivered;
  if ((__s32)(acknowledged - m->window_end) < 0 || !segments)
    return 0;
  __u32 marked = delivered_ce - m->delivered_ce;
  __u32 M_q24 = share_q24(marked < segments ? marked : segments, segments);
  m->alpha_q24 -= (__u32)times_q24(m->alpha_q24, p->g_q24);
  m->alpha_q24 += (__u32)times_q24(M_q24, p->g_q24);
  m->delivered = delivered;
  m->delivered_ce = delivered_ce;
  m->window_end = sent;
  return 1;
}

// Returns the window that remains after marks, in the unit of `cwnd`: cwnd * (1 - alpha / 2).
static __always_inline __u64 marking_cut(const struct marking *m, __u64 cwnd) {
  return cwnd - (times_q24(cwnd, m->alpha_q24) >> 1);
}

#endif
