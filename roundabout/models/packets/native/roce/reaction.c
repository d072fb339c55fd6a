// SPDX-License-Identifier: Apache-2.0
#include "reaction.h"

#include "dcqcn/reaction_point.h"

#include <stdlib.h>

// The header's clock counts its parameters' unit in 32 bits. In us, timers would end up to 1 us early, which is 1 % of
// T; in tenths it is 0.1 %, and the clock wraps after 429 s: a longer silence counts as what is beyond.
#define TICK_PS 100000

struct reaction {
  struct reaction_point rp;
  struct dcqcn_params p; // as F scales them
  struct dcqcn_counters c;
  struct mltcp_member *member; // NULL: not MLTCP
  __u64 R_AI, R_HAI;           // as they are given
};

static __u32 ticks(int64_t ps) { return (__u32)(ps / TICK_PS); }

// At least 1: the header's timers divide time by their periods.
static __u32 period(int64_t ps) { return ps > TICK_PS ? ticks(ps) : 1; }

struct reaction *reaction_create(const struct reaction_plan *plan) {
  struct reaction *reaction = calloc(1, sizeof(*reaction));
  if (!reaction)
    abort();
  reaction->p = (struct dcqcn_params){
      .T_us = period(plan->T_ps),
      .F = plan->F,
      .byte_counter_bytes = plan->byte_counter_bytes,
      .R_AI = plan->R_AI,
      .R_HAI = plan->R_HAI,
      .R_min = plan->R_min,
      .R_max = plan->R_max,
      .g_q24 = plan->g_q24,
      .alpha_timer_us = period(plan->alpha_timer_ps),
      .cnp_gap_us = ticks(plan->cnp_gap_ps),
      .clamp_target = plan->clamp_target,
      .clamp_target_after_timer = plan->clamp_target_after_timer,
      .hyper_by_stage = plan->hyper_by_stage,
      .alpha_by_timer = plan->alpha_by_timer,
      .alpha_initial_q24 = plan->alpha_initial_q24,
      .rate_on_first_cnp = plan->rate_on_first_cnp,
  };
  reaction->R_AI = plan->R_AI;
  reaction->R_HAI = plan->R_HAI;
  reaction_begin(reaction);
  return reaction;
}

void reaction_begin(struct reaction *reaction) { reaction_point_begin(&reaction->rp, &reaction->p, 0); }

void reaction_join(struct reaction *reaction, struct mltcp_job *job) { reaction->member = mltcp_join(job); }

void reaction_leave(struct reaction *reaction) {
  if (!reaction)
    return;
  mltcp_leave(reaction->member);
  reaction->member = NULL;
}

void reaction_destroy(struct reaction *reaction) {
  reaction_leave(reaction);
  free(reaction);
}

// Counts sent bytes. mltcp_dcqcn.bpf.c counts acknowledged bytes.
static void count(struct reaction *reaction, int64_t now_ps, uint64_t bytes) {
  mltcp_on_bytes(reaction->member, now_ps, bytes);
  reaction->p.R_AI = mltcp_additive(reaction->member, reaction->R_AI);
  reaction->p.R_HAI = mltcp_R_HAI(reaction->member, reaction->R_HAI);
}

// Reduces a cut from the rate `before`, as mltcp_dcqcn.bpf.c does.
static void soften(struct reaction *reaction, __u64 before) {
  struct reaction_point *rp = &reaction->rp;
  __u64 kept = mltcp_cut(reaction->member, before, rp->R_C < before ? rp->R_C : before);
  rp->R_C = kept > reaction->p.R_min ? kept : reaction->p.R_min;
}

uint64_t reaction_on_send(struct reaction *reaction, int64_t now_ps, uint64_t bytes) {
  if (reaction->member && bytes)
    count(reaction, now_ps, bytes);
  reaction_point_run_timers(&reaction->rp, &reaction->p, &reaction->c, ticks(now_ps));
  reaction_point_count_bytes(&reaction->rp, &reaction->p, &reaction->c, bytes);
  return reaction->rp.R_C;
}

int reaction_is_limited(const struct reaction *reaction) { return reaction->rp.R_C < reaction->p.R_max; }

void reaction_on_cnp(struct reaction *reaction, int64_t now_ps) {
  reaction_point_run_timers(&reaction->rp, &reaction->p, &reaction->c, ticks(now_ps));
  __u64 before = reaction_point_on_cnp(&reaction->rp, &reaction->p, ticks(now_ps));
  if (reaction->member)
    soften(reaction, before);
  reaction->c.cnps++;
}

void reaction_read(const struct reaction *reaction, struct pair_result *into) {
  into->cnps = reaction->c.cnps;
  into->fast_increases = reaction->c.fast_increases;
  into->additive_increases = reaction->c.additive_increases;
  into->hyper_increases = reaction->c.hyper_increases;
  into->rate_bytes_per_s = reaction->rp.R_C;
  into->alpha_q24 = reaction->rp.alpha_q24;
}
