// SPDX-License-Identifier: Apache-2.0
#include "algorithm.h"

#include <stdlib.h>

static const struct algorithm *const algorithms[ALGORITHMS] = {
    [ALGORITHM_RENO] = &reno_algorithm,
    [ALGORITHM_CUBIC] = &cubic_algorithm,
    [ALGORITHM_DCTCP] = &dctcp_algorithm,
};

struct congestion_control *congestion_create(const struct congestion_plan *plan, struct tcp_view *view) {
  struct congestion_control *cc = calloc(1, sizeof(*cc));
  if (!cc)
    abort();
  cc->algorithm = algorithms[plan->algorithm];
  cc->algorithm->begin(cc, plan, view);
  return cc;
}

void congestion_join(struct congestion_control *cc, struct mltcp_job *job) { cc->member = mltcp_join(job); }

void congestion_leave(struct congestion_control *cc) {
  mltcp_leave(cc->member);
  cc->member = NULL;
}

void congestion_take_member(struct congestion_control *cc, struct congestion_control *former) {
  cc->member = former->member;
  former->member = NULL;
}

void congestion_destroy(struct congestion_control *cc) {
  if (cc)
    congestion_leave(cc);
  free(cc);
}

int congestion_owns_window(const struct congestion_control *cc) { return (int)cc->algorithm->owns_window; }

int congestion_needs_accurate_echo(const struct congestion_control *cc) {
  return (int)cc->algorithm->needs_accurate_echo;
}

void congestion_on_ack(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack) {
  if (cc->algorithm->on_ack)
    cc->algorithm->on_ack(cc, view, ack);
}

void congestion_on_bytes(struct congestion_control *cc, const struct tcp_view *view, uint64_t bytes) {
  if (cc->member)
    mltcp_on_bytes(cc->member, view->now_ps, bytes);
}

void congestion_set_window(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack) {
  cc->algorithm->set_window(cc, view, ack);
}

void congestion_increase(struct congestion_control *cc, struct tcp_view *view, uint32_t acked) {
  cc->algorithm->increase(cc, view, mltcp_acked(cc->member, view->cwnd < view->ssthresh, acked));
}

uint32_t congestion_ssthresh(struct congestion_control *cc, const struct tcp_view *view) {
  const uint32_t base = cc->algorithm->ssthresh(cc, view);
  if (cc->algorithm->owns_window)
    return base;
  const uint64_t kept = mltcp_cut(cc->member, view->cwnd, base);
  return kept > MIN_SSTHRESH ? (uint32_t)kept : MIN_SSTHRESH;
}

void congestion_on_timeout(struct congestion_control *cc, struct tcp_view *view) {
  if (cc->algorithm->on_timeout)
    cc->algorithm->on_timeout(cc, view);
}

void congestion_on_idle(struct congestion_control *cc, struct tcp_view *view, int64_t idle_ps) {
  if (cc->algorithm->on_idle)
    cc->algorithm->on_idle(cc, view, idle_ps);
}

void congestion_read(const struct congestion_control *cc, struct connection_result *into) {
  into->iterations = mltcp_iterations(cc->member);
  into->iteration_bytes = mltcp_iteration_bytes(cc->member);
  into->F_q24 = mltcp_F_q24(cc->member);
  into->alpha_q24 = cc->algorithm->alpha_q24 ? cc->algorithm->alpha_q24(cc) : 0;
}
