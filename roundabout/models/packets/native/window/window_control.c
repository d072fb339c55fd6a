// SPDX-License-Identifier: Apache-2.0
#include "window_control.h"

#include "mltcp_swift/mltcp_swift.model.h"
#include "nscc/nscc.model.h"

#include <stdlib.h>

// The headers count times in the unit of their parameters; here it is the nanosecond.
#define TICK_PS 1000

struct swift {
  struct swift_flow flow;
  struct swift_params p; // as F scales them
  struct swift_counters c;
  uint32_t ai_q24; // as it is given
};

struct nscc {
  struct nscc_flow flow;
  struct nscc_params p;
  struct nscc_counters c;
};

struct window_control {
  uint32_t algorithm;
  struct window_path path;
  struct mltcp_member *member; // NULL: not MLTCP
  union {
    struct swift swift;
    struct nscc nscc;
  } state;
};

static __u64 ticks(int64_t ps) { return (__u64)(ps / TICK_PS); }

static struct swift_params swift_params_of(const struct swift_plan *plan) {
  return (struct swift_params){
      .base_target_us = plan->base_target_ns,
      .hop_us = plan->hop_ns,
      .fs_range_us = plan->fs_range_ns,
      .fs_min_cwnd_q24 = plan->fs_min_cwnd_q24,
      .fs_max_cwnd_q24 = plan->fs_max_cwnd_q24,
      .ai_q24 = plan->ai_q24,
      .beta_q24 = plan->beta_q24,
      .max_mdf_q24 = plan->max_mdf_q24,
      .min_cwnd_q24 = plan->min_cwnd_q24,
      .max_cwnd = plan->max_cwnd,
      .initial_cwnd = plan->initial_cwnd,
      .retx_reset = plan->retx_reset,
  };
}

static struct nscc_params nscc_params_of(const struct nscc_plan *plan) {
  return (struct nscc_params){
      .line = plan->line,
      .network_rtt_us = plan->network_rtt_ns,
      .target_us = plan->target_ns,
      .qa_gate = plan->qa_gate,
      .gamma_q24 = plan->gamma_q24,
      .initial_cwnd = plan->initial_cwnd,
  };
}

struct window_control *window_create(const struct window_plan *plan, const struct window_path *path) {
  struct window_control *control = calloc(1, sizeof(*control));
  if (!control)
    abort();
  control->algorithm = plan->algorithm;
  control->path = *path;
  if (plan->algorithm == WINDOW_SWIFT) {
    control->state.swift.p = swift_params_of(&plan->swift);
    control->state.swift.ai_q24 = plan->swift.ai_q24;
  } else {
    control->state.nscc.p = nscc_params_of(&plan->nscc);
  }
  window_begin(control, 0);
  return control;
}

void window_begin(struct window_control *control, int64_t now_ps) {
  if (control->algorithm == WINDOW_SWIFT) {
    struct swift *swift = &control->state.swift;
    swift_begin(&swift->flow, &swift->p, control->path.links, ticks(now_ps));
  } else {
    struct nscc *nscc = &control->state.nscc;
    nscc_begin(&nscc->flow, &nscc->p, (__u32)control->path.payload_bytes, ticks(control->path.round_trip_ps));
  }
}

void window_join(struct window_control *control, struct mltcp_job *job) { control->member = mltcp_join(job); }

void window_leave(struct window_control *control) {
  mltcp_leave(control->member);
  control->member = NULL;
}

void window_destroy(struct window_control *control) {
  if (control)
    window_leave(control);
  free(control);
}

// Reduces Swift's cut from the window `before`, as MLTCP does.
static void soften(struct window_control *control, __u64 before_q24) {
  struct swift_flow *flow = &control->state.swift.flow;
  if (control->member && flow->cwnd_q24 < before_q24)
    flow->cwnd_q24 = mltcp_cut(control->member, before_q24, flow->cwnd_q24);
}

static void swift_receives(struct window_control *control, const struct window_ack *ack) {
  struct swift *swift = &control->state.swift;
  const __u64 before_q24 = swift->flow.cwnd_q24;
  if (control->member) {
    mltcp_on_bytes(control->member, ack->now_ps, (uint64_t)ack->bytes);
    swift->p.ai_q24 = (__u32)mltcp_additive(control->member, swift->ai_q24);
  }
  swift_on_ack(&swift->flow, &swift->p, &swift->c, ticks(ack->now_ps), ticks(ack->rtt_ps),
               ((__u64)ack->bytes << 24) / (__u64)control->path.payload_bytes);
  soften(control, before_q24);
}

static void nscc_receives(struct nscc *nscc, const struct window_ack *ack) {
  const struct nscc_ack received = {
      .now = ticks(ack->now_ps),
      .rtt = ticks(ack->rtt_ps),
      .bytes = (__u64)ack->bytes,
      .in_flight = (__u64)ack->in_flight_bytes,
      .is_marked = ack->is_marked != 0,
  };
  nscc_on_ack(&nscc->flow, &nscc->p, &nscc->c, &received);
}

void window_on_ack(struct window_control *control, const struct window_ack *ack) {
  if (control->algorithm == WINDOW_SWIFT)
    swift_receives(control, ack);
  else
    nscc_receives(&control->state.nscc, ack);
}

void window_on_loss(struct window_control *control, int64_t now_ps, int64_t bytes, int64_t in_flight_bytes) {
  if (control->algorithm == WINDOW_SWIFT) {
    struct swift *swift = &control->state.swift;
    const __u64 before_q24 = swift->flow.cwnd_q24;
    swift_on_loss(&swift->flow, &swift->p, &swift->c, ticks(now_ps));
    soften(control, before_q24);
  } else {
    struct nscc *nscc = &control->state.nscc;
    nscc_on_loss(&nscc->flow, &nscc->p, &nscc->c, ticks(now_ps), (__u64)bytes, (__u64)in_flight_bytes);
  }
}

void window_on_timeout(struct window_control *control, int64_t now_ps, int64_t bytes) {
  if (control->algorithm == WINDOW_SWIFT) {
    struct swift *swift = &control->state.swift;
    swift_on_timeout(&swift->flow, &swift->p, &swift->c, ticks(now_ps));
  } else {
    struct nscc *nscc = &control->state.nscc;
    nscc_on_timeout(&nscc->flow, &nscc->c, (__u64)bytes);
  }
}

int64_t window_bytes(const struct window_control *control) {
  if (control->algorithm == WINDOW_NSCC)
    return (int64_t)control->state.nscc.flow.cwnd;
  return (int64_t)(control->state.swift.flow.cwnd_q24 * (__u64)control->path.payload_bytes >> 24);
}

int64_t window_pacing_ps(const struct window_control *control) {
  if (control->algorithm == WINDOW_NSCC)
    return 0;
  return (int64_t)swift_pacing_delay(&control->state.swift.flow) * TICK_PS;
}

void window_read(const struct window_control *control, struct window_result *into) {
  into->cwnd_bytes = window_bytes(control);
  into->iterations = mltcp_iterations(control->member);
  into->iteration_bytes = mltcp_iteration_bytes(control->member);
  into->F_q24 = mltcp_F_q24(control->member);
  if (control->algorithm == WINDOW_SWIFT) {
    const struct swift_counters *c = &control->state.swift.c;
    into->increases = c->increases;
    into->decreases = c->decreases;
  } else {
    const struct nscc_counters *c = &control->state.nscc.c;
    into->increases = c->fair_increases + c->proportional_increases + c->fast_increases;
    into->decreases = c->decreases;
    into->quick_adapts = c->quick_adapts;
  }
}
