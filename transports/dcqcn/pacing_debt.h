// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes that a flow's rate allowed and that its pacing timer did not send. For a timer that fires late, Linux
// compensates half of a burst's time at most (tcp_update_skb_after_send). So a flow with short gaps loses more of its
// rate than a slow one, which equalizes their rates. A NIC's rate limiter loses nothing. Times are in us.
#ifndef ROUNDABOUT_DCQCN_PACING_DEBT_H
#define ROUNDABOUT_DCQCN_PACING_DEBT_H

#include "dcqcn_params.h"

// Time in which a debt is paid, by the host's own clock. If it were shorter, bursts of some 4 kB would show in the
// rate. If it were longer, a flow would pay a debt from before a cut. A longer silence leaves no debt.
#define PAYS_IN_US 1000

struct pacing_debt {
  __s64 bytes;
  __u32 sent;    // the sequence number up to which the flow had sent at the last ACK
  bool had_data; // true if the flow had more to send then
};

// Begins without a debt.
static __always_inline void pacing_debt_begin(struct pacing_debt *debt, __u32 sent) {
  debt->bytes = 0;
  debt->sent = sent;
  debt->had_data = 0;
}

// Adds the bytes that `rate` allowed in the last `since` us, less the bytes sent up to `sent`. A flow that had nothing
// to send at one of the two ACKs, or was silent, has no debt. The debt is at most half of the rate times PAYS_IN_US.
static __always_inline void pacing_debt_on_ack(struct pacing_debt *debt, struct dcqcn_counters *c, __u64 rate,
                                               __u32 since, __u32 sent, bool has_data) {
  __u32 bytes = sent - debt->sent;
  bool had_data = debt->had_data && has_data;
  debt->sent = sent;
  debt->had_data = has_data;
  if (!had_data || since > PAYS_IN_US) {
    debt->bytes = 0;
    return;
  }
  __u64 allowed = rate * since / US_PER_S;
  __s64 most = rate * PAYS_IN_US / US_PER_S / 2;
  c->asked_bytes += allowed;
  c->paced_bytes += bytes;
  debt->bytes += (__s64)allowed - (__s64)bytes;
  if (debt->bytes > most)
    debt->bytes = most;
  if (debt->bytes < -most)
    debt->bytes = -most;
}

// Returns the rate that pays the debt, which is `highest` at most.
static __always_inline __u64 pacing_debt_rate(const struct pacing_debt *debt, __u64 rate, __u64 highest) {
  __s64 most = rate / 2, extra = debt->bytes * (US_PER_S / PAYS_IN_US);
  if (extra > most) // the debt is from a higher rate, before a cut
    extra = most;
  if (extra < -most)
    extra = -most;
  rate += extra;
  return rate < highest ? rate : highest;
}

#endif
