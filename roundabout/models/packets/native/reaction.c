// SPDX-License-Identifier: Apache-2.0
#include "reaction.h"

#include "dcqcn/reaction_point.h"
#include "mltcp/aggressiveness.h"

#include <stdlib.h>

// The header's clock counts its parameters' unit in 32 bits. In us, timers would end up to 1 us early, which is 1 % of
// T; in tenths it is 0.1 %, and the clock wraps after 429 s, over which no flow's timers matter.
#define TICK_PS 100000
#define US_PS 1000000

struct mltcp_job {
  struct iteration iteration;
  struct mltcp_params p;
};

struct reaction {
  struct reaction_point rp;
  struct dcqcn_params p; // as F scales them
  struct dcqcn_counters c;
  struct mltcp_job *job; // none without MLTCP
  __u64 R_AI, R_HAI;     // as they are given
  __u32 F_q24;
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
  };
  reaction->R_AI = plan->R_AI;
  reaction->R_HAI = plan->R_HAI;
  reaction->F_q24 = ONE_Q24;
  reaction_point_begin(&reaction->rp, &reaction->p, 0);
  return reaction;
}

struct mltcp_job *mltcp_job_create(const struct mltcp_plan *plan) {
  struct mltcp_job *job = calloc(1, sizeof(*job));
  if (!job)
    abort();
  job->p = (struct mltcp_params){
      .shape = plan->shape,
      .slope_q24 = plan->slope_q24,
      .intercept_q24 = plan->intercept_q24,
      .acts_on = plan->acts_on,
      .iteration_bytes = plan->iteration_bytes,
      .gap_us = plan->gap_us,
      .learn_q24 = plan->learn_q24,
  };
  return job;
}

void mltcp_job_destroy(struct mltcp_job *job) { free(job); }

void reaction_join(struct reaction *reaction, struct mltcp_job *job) { reaction->job = job; }

// What mltcp_dcqcn.bpf.c does with an ACK, here with bytes that are sent.
static void count(struct reaction *reaction, int64_t now_ps, uint64_t bytes) {
  struct mltcp_job *job = reaction->job;
  iteration_on_ack(&job->iteration, &job->p, (__u64)(now_ps / US_PS), bytes);
  reaction->F_q24 = aggressiveness_of(&job->iteration, &job->p);
  if (job->p.acts_on != DECREASE)
    reaction->p.R_AI = times_q24(reaction->R_AI, reaction->F_q24);
  if (job->p.acts_on == INCREASE)
    reaction->p.R_HAI = times_q24(reaction->R_HAI, reaction->F_q24);
}

// After a CNP R_T is what the rate was before (mltcp_dcqcn.bpf.c).
static void soften(struct reaction *reaction) {
  struct reaction_point *rp = &reaction->rp;
  __u64 kept = aggressiveness_decrease(rp->R_T, rp->R_C < rp->R_T ? rp->R_C : rp->R_T, reaction->F_q24);
  rp->R_C = kept > reaction->p.R_min ? kept : reaction->p.R_min;
}

void reaction_destroy(struct reaction *reaction) { free(reaction); }

uint64_t reaction_on_send(struct reaction *reaction, int64_t now_ps, uint64_t bytes) {
  if (reaction->job && bytes)
    count(reaction, now_ps, bytes);
  reaction_point_run_timers(&reaction->rp, &reaction->p, &reaction->c, ticks(now_ps));
  reaction_point_count_bytes(&reaction->rp, &reaction->p, &reaction->c, bytes);
  return reaction->rp.R_C;
}

void reaction_on_cnp(struct reaction *reaction, int64_t now_ps) {
  reaction_point_run_timers(&reaction->rp, &reaction->p, &reaction->c, ticks(now_ps));
  reaction_point_on_cnp(&reaction->rp, &reaction->p, ticks(now_ps));
  if (reaction->job && reaction->job->p.acts_on == DECREASE)
    soften(reaction);
  reaction->c.cnps++;
}

void reaction_counters(const struct reaction *reaction, uint64_t into[REACTION_COUNTERS]) {
  into[0] = reaction->c.cnps;
  into[1] = reaction->c.fast_increases;
  into[2] = reaction->c.additive_increases;
  into[3] = reaction->c.hyper_increases;
  into[4] = reaction->rp.R_C;
  into[5] = reaction->rp.alpha_q24;
}
