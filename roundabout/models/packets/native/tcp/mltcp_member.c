// SPDX-License-Identifier: Apache-2.0
#include "mltcp_member.h"

#include "mltcp/aggressiveness.h"

#include <stdlib.h>

#define PS_PER_US 1000000

struct mltcp_job {
  struct iteration iteration;
  struct mltcp_params p;
  uint32_t members;
};

struct mltcp_member {
  struct mltcp_job *job;
  uint32_t F_q24, carried_q24;
};

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

struct mltcp_member *mltcp_join(struct mltcp_job *job) {
  struct mltcp_member *member = calloc(1, sizeof(*member));
  if (!member)
    abort();
  member->job = job;
  member->F_q24 = ONE_Q24;
  job->members++;
  return member;
}

void mltcp_leave(struct mltcp_member *member) {
  if (!member)
    return;
  if (--member->job->members == 0)
    member->job->iteration = (struct iteration){0};
  free(member);
}

// The header's 0 us is "never".
void mltcp_on_bytes(struct mltcp_member *member, int64_t now_ps, uint64_t bytes) {
  iteration_on_ack(&member->job->iteration, &member->job->p, (uint64_t)(now_ps / PS_PER_US) + 1, bytes);
  member->F_q24 = aggressiveness_of(&member->job->iteration, &member->job->p);
}

uint32_t mltcp_acked(struct mltcp_member *member, int in_slow_start, uint32_t acked) {
  if (!member || member->job->p.acts_on == DECREASE || in_slow_start)
    return acked;
  return aggressiveness_increase(acked, member->F_q24, &member->carried_q24);
}

uint64_t mltcp_cut(const struct mltcp_member *member, uint64_t before, uint64_t base) {
  if (!member || member->job->p.acts_on != DECREASE || base > before)
    return base;
  return aggressiveness_decrease(before, base, member->F_q24);
}

uint64_t mltcp_additive(const struct mltcp_member *member, uint64_t step) {
  return member->job->p.acts_on != DECREASE ? times_q24(step, member->F_q24) : step;
}

uint64_t mltcp_R_HAI(const struct mltcp_member *member, uint64_t R_HAI) {
  return member->job->p.acts_on == INCREASE ? times_q24(R_HAI, member->F_q24) : R_HAI;
}

uint32_t mltcp_F_q24(const struct mltcp_member *member) { return member ? member->F_q24 : ONE_Q24; }

uint64_t mltcp_iterations(const struct mltcp_member *member) { return member ? member->job->iteration.ended : 0; }

uint64_t mltcp_iteration_bytes(const struct mltcp_member *member) {
  return member ? iteration_bytes(&member->job->iteration, &member->job->p) : 0;
}
