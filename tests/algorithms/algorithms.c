// SPDX-License-Identifier: Apache-2.0
// The algorithms as the transports' programs have them, one function each for Python to call.
#include "dcqcn/burst_rate.h"
#include "dcqcn/held_cnps.h"
#include "dcqcn/pacing_debt.h"
#include "dctcp/cwnd.h"
#include "mltcp/aggressiveness.h"
#include "nscc/nscc.model.h"
#include "swift/swift.model.h"

void reaction_point_begins(struct reaction_point *rp, struct held_cnps *held, const struct dcqcn_params *p, __u32 now) {
  reaction_point_begin(rp, p, now);
  held_cnps_begin(held, p, now);
}

// What dcqcn/flow.h does with an ACK. Returns whether a CNP acted.
int reaction_point_receives(struct reaction_point *rp, struct held_cnps *held, const struct dcqcn_params *p,
                            struct dcqcn_counters *c, __u32 now, __u32 spacing, int marked, __u64 acked_bytes) {
  struct ack ack = {.bytes = acked_bytes, .now = now, .spacing = spacing, .is_marked = marked};
  return reaction_point_on_ack(rp, held, p, c, &ack) > 0;
}

__u64 burst_paces(struct reaction_point *rp, const struct dcqcn_params *p, __u32 now, __u32 bytes) {
  return burst_rate(rp, p, now, bytes);
}

void pacing_debt_begins(struct pacing_debt *debt, __u32 sent) { pacing_debt_begin(debt, sent); }

void pacing_debt_receives(struct pacing_debt *debt, struct dcqcn_counters *c, __u64 rate, __u32 since, __u32 sent,
                          int has_data) {
  pacing_debt_on_ack(debt, c, rate, since, sent, has_data);
}

__u64 pacing_debt_paces(const struct pacing_debt *debt, __u64 rate, __u64 highest) {
  return pacing_debt_rate(debt, rate, highest);
}

void marking_begins(struct marking *m, __u32 delivered, __u32 delivered_ce, __u32 sent) {
  marking_begin(m, delivered, delivered_ce, sent);
}

int marking_receives(struct marking *m, const struct dctcp_params *p, __u32 acknowledged, __u32 sent, __u32 delivered,
                     __u32 delivered_ce) {
  return marking_on_ack(m, p, acknowledged, sent, delivered, delivered_ce);
}

__u64 marking_cuts(const struct marking *m, __u64 cwnd) { return marking_cut(m, cwnd); }

void cwnd_begins(struct cwnd *w, __u32 segments, __u32 ssthresh) { cwnd_begin(w, segments, ssthresh); }

// What dctcp does with an ACK, and mltcp_dctcp with an F. Returns whether there was a timeout.
int cwnd_receives(struct cwnd *w, const struct marking *m, __u32 acknowledged, __u32 sent, __u32 kernels, __u32 acked,
                  enum reduction reduction, int is_used, __u32 F_q24, __u32 *carried_q24) {
  bool timeout = cwnd_on_ack(w, acknowledged, sent, kernels);
  if (cwnd_must_reduce(w, reduction))
    cwnd_reduce(w, reduction, cwnd_cut_q24(w, m, reduction), sent);
  else if (is_used && cwnd_may_grow(w))
    cwnd_add(w, aggressiveness_increase(cwnd_slow_start(w, acked), F_q24, carried_q24));
  return timeout;
}

void iteration_receives(struct iteration *it, const struct mltcp_params *p, __u64 now_us, __u64 bytes) {
  iteration_on_ack(it, p, now_us, bytes);
}

__u32 iteration_ratio(const struct iteration *it, const struct mltcp_params *p) { return iteration_ratio_q24(it, p); }

__u32 aggressiveness(const struct mltcp_params *p, __u32 ratio_q24) { return aggressiveness_at(p, ratio_q24); }

__u32 aggressiveness_now(const struct iteration *it, const struct mltcp_params *p) { return aggressiveness_of(it, p); }

__u32 aggressiveness_increases(__u32 by, __u32 F_q24, __u32 *carried_q24) {
  return aggressiveness_increase(by, F_q24, carried_q24);
}

__u64 aggressiveness_decreases(__u64 before, __u64 after, __u32 F_q24) {
  return aggressiveness_decrease(before, after, F_q24);
}

__u64 times(__u64 value, __u32 factor_q24) { return times_q24(value, factor_q24); }

void swift_begins(struct swift_flow *f, const struct swift_params *p, __u32 links, __u64 now) {
  swift_begin(f, p, links, now);
}

__u64 swift_targets(const struct swift_flow *f, const struct swift_params *p) {
  return target_delay_at(&f->target, p, f->cwnd_q24);
}

void swift_receives(struct swift_flow *f, const struct swift_params *p, struct swift_counters *c, __u64 now,
                    __u64 delay, __u64 acked_q24) {
  swift_on_ack(f, p, c, now, delay, acked_q24);
}

void swift_loses(struct swift_flow *f, const struct swift_params *p, struct swift_counters *c, __u64 now) {
  swift_on_loss(f, p, c, now);
}

void swift_times_out(struct swift_flow *f, const struct swift_params *p, struct swift_counters *c, __u64 now) {
  swift_on_timeout(f, p, c, now);
}

__u64 swift_paces(const struct swift_flow *f) { return swift_pacing_delay(f); }

void nscc_begins(struct nscc_flow *f, const struct nscc_params *p, __u32 packet_bytes, __u64 path_rtt) {
  nscc_begin(f, p, packet_bytes, path_rtt);
}

void nscc_receives(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c, __u64 now, __u64 rtt,
                   __u64 bytes, __u64 in_flight, int is_marked) {
  struct nscc_ack ack = {.now = now, .rtt = rtt, .bytes = bytes, .in_flight = in_flight, .is_marked = is_marked};
  nscc_on_ack(f, p, c, &ack);
}

void nscc_loses(struct nscc_flow *f, const struct nscc_params *p, struct nscc_counters *c, __u64 now, __u64 bytes,
                __u64 in_flight) {
  nscc_on_loss(f, p, c, now, bytes, in_flight);
}

void nscc_times_out(struct nscc_flow *f, struct nscc_counters *c, __u64 bytes) { nscc_on_timeout(f, c, bytes); }
