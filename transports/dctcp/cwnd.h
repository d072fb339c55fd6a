// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP's congestion window, in segments: marks cut it by alpha / 2, losses halve it, each at most once a window of
// data (RFC 8257, sections 3.3 to 3.5), and it grows as Reno's does (RFC 5681, section 3.1). Sequence numbers wrap.
#ifndef ROUNDABOUT_DCTCP_CWND_H
#define ROUNDABOUT_DCTCP_CWND_H

#include "marking.h"

#define MIN_CWND 2 // segments

// Causes of a reduction, the weakest first. Within one window of data only a stronger cause reduces again.
enum reduction { NOTHING, MARKS, LOSS, TIMEOUT };

// A congestion window with a fraction. Windows are small, and a cut is often less than a segment, so cuts apply to
// whole segments and fraction. The fraction of the next segment is `acked` over the window.
struct cwnd {
  __u32 segments;
  __u32 ssthresh;
  __u32 acked; // acknowledged segments since the last increase
  __u32 reduced_by;
  __u32 reduced_end; // sequence number at which the reduction ends
};

// Begins with the given window and ssthresh, in segments.
static __always_inline void cwnd_begin(struct cwnd *w, __u32 segments, __u32 ssthresh) {
  w->segments = segments;
  w->ssthresh = ssthresh;
  w->acked = 0;
  w->reduced_by = NOTHING;
}

// Returns the window with its fraction, in units of 2^-24 segments.
static __always_inline __u64 cwnd_q24(const struct cwnd *w) {
  return ((__u64)w->segments << 24) + share_q24(w->acked, w->segments);
}

// Returns the window that remains after marks or losses.
static __always_inline __u64 cwnd_cut_q24(const struct cwnd *w, const struct marking *m, enum reduction by) {
  return by == LOSS ? cwnd_q24(w) / 2 : marking_cut(m, cwnd_q24(w));
}

// Returns true if this cause is stronger than the last reduction in this window of data.
static __always_inline bool cwnd_must_reduce(const struct cwnd *w, enum reduction by) { return by > w->reduced_by; }

// Reduces window and ssthresh to `kept_q24`; the reduction ends once `sent` is acknowledged.
static __always_inline void cwnd_reduce(struct cwnd *w, enum reduction by, __u64 kept_q24, __u32 sent) {
  if (kept_q24 < MIN_CWND * (__u64)ONE_Q24)
    kept_q24 = MIN_CWND * (__u64)ONE_Q24;
  w->segments = w->ssthresh = (__u32)(kept_q24 >> 24);
  w->acked = (__u32)times_q24(w->segments, kept_q24 & (ONE_Q24 - 1));
  w->reduced_by = by;
  w->reduced_end = sent;
}

// Updates the window at an ACK, before other changes. A lower window of the kernel, `kernels`, means a timeout and is
// adopted; a higher one is ignored. Returns true if there was a timeout.
static __always_inline bool cwnd_on_ack(struct cwnd *w, __u32 acknowledged, __u32 sent, __u32 kernels) {
  if ((__s32)(acknowledged - w->reduced_end) >= 0)
    w->reduced_by = NOTHING;
  if (kernels >= w->segments)
    return 0;
  cwnd_reduce(w, TIMEOUT, w->reduced_by < LOSS ? cwnd_q24(w) / 2 : (__u64)w->ssthresh << 24, sent);
  w->segments = kernels;
  w->acked = 0;
  return 1;
}

static __always_inline bool cwnd_in_slow_start(const struct cwnd *w) { return w->segments < w->ssthresh; }

// Returns true if the window may grow: at once after a timeout, and otherwise once all data in flight at a reduction
// are acknowledged.
static __always_inline bool cwnd_may_grow(const struct cwnd *w) {
  return w->reduced_by == NOTHING || w->reduced_by == TIMEOUT;
}

// Grows the window by slow start up to ssthresh. Returns the acknowledged segments that remain for the additive
// increase.
static __always_inline __u32 cwnd_slow_start(struct cwnd *w, __u32 acked) {
  if (!cwnd_in_slow_start(w))
    return acked;
  __u32 room = w->ssthresh - w->segments, used = acked < room ? acked : room;
  w->segments += used;
  return acked - used;
}

// Grows the window by one segment for each acknowledged window.
static __always_inline void cwnd_add(struct cwnd *w, __u32 acked) {
  w->acked += acked;
  if (w->acked < w->segments)
    return;
  __u32 windows = w->acked / w->segments;
  w->acked -= windows * w->segments;
  w->segments += windows;
}

#endif
