// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCQCN's reaction point (Zhu et al., SIGCOMM'15, section 3.1 and Figure 7), without a network: rates in bytes/s, times
// in us on a clock that wraps at 32 bits.
#ifndef ROUNDABOUT_DCQCN_REACTION_POINT_H
#define ROUNDABOUT_DCQCN_REACTION_POINT_H

#include "dcqcn_params.h"
#ifdef __bpf__
#include <bpf/bpf_helpers.h>
#endif

// Largest number of the byte counter's increases at one ACK, because the verifier needs a bound; further increases wait
// for the next ACK. At scale 100, two bursts of 4600 bytes bring 28 to the shortest counter of `sets/`, which is then
// 327 bytes.
#define MAX_BYTE_EVENTS 128

// Largest number of overdue increases at one ACK. It limits the time of a call to some 10 ms; the kernel's bpf_loop()
// would take 1 << 23 turns (BPF_MAX_LOOPS). The sets of `sets/` reach R_max within 5,000.
#define MAX_TURNS (1 << 20)

// A function that the verifier checks once, and not once for each path to a call. The verifier then has no information
// about the arguments, so the function must check pointers.
#ifdef __bpf__
#define FOLLOWED_ONCE __attribute__((noinline))
#else
#define FOLLOWED_ONCE static inline
#endif

struct reaction_point {
  __u64 R_C;
  __u64 R_T;
  __u64 bytes; // acknowledged since the byte counter's last increase
  __u32 alpha_q24;
  __u32 increased_us;
  __u32 alpha_us;
  __u16 timer_stage;
  __u16 byte_stage;
  __u32 heard_cnp; // since alpha's last update, with alpha_by_timer: each raises alpha once
  bool was_cut;    // a CNP has come since the flow began
};

// Initializes a flow at the highest rate. Until its first CNP, alpha is 1 and no timer runs, however late it sends its
// first packet: a NIC allocates a rate limiter then (initial_alpha_value of NVIDIA's NICs; cnp_received_mlx in HPCC's
// rdma-hw.cc).
static __always_inline void reaction_point_begin(struct reaction_point *rp, const struct dcqcn_params *p, __u32 now) {
  *rp = (struct reaction_point){
      .R_C = p->R_max, .R_T = p->R_max, .alpha_q24 = ONE_Q24, .increased_us = now, .alpha_us = now};
}

// Applies one increase event of the timer or of the byte counter. R_C is rounded up, so that it reaches R_T. A flow at
// R_max has no events.
static __always_inline void reaction_point_increase(struct reaction_point *rp, const struct dcqcn_params *p,
                                                    struct dcqcn_counters *c) {
  // Without a byte counter the timer's stage stands for both, or there would be no hyper increase.
  __u32 byte_stage = p->byte_counter_bytes ? rp->byte_stage : rp->timer_stage;
  __u32 high = rp->timer_stage > byte_stage ? rp->timer_stage : byte_stage;
  __u32 low = rp->timer_stage > byte_stage ? byte_stage : rp->timer_stage;

  if (rp->R_C == p->R_max)
    return;
  if (high < p->F) {
    c->fast_increases++;
  } else if (low <= p->F) {
    rp->R_T += p->R_AI;
    c->additive_increases++;
  } else {
    // A step that leads to R_max whatever the stage is: the product has no more than 64 bits.
    rp->R_T += (p->hyper_by_stage ? low - p->F : 1) * (p->R_HAI < p->R_max ? p->R_HAI : p->R_max);
    c->hyper_increases++;
  }
  if (rp->R_T > p->R_max)
    rp->R_T = p->R_max;
  rp->R_C = (rp->R_C + rp->R_T + 1) >> 1;
}

// Applies the increase event that ends a period of the timer.
static __always_inline void reaction_point_next_stage(struct reaction_point *rp, const struct dcqcn_params *p,
                                                      struct dcqcn_counters *c) {
  if (rp->timer_stage < 0xffff)
    rp->timer_stage++;
  reaction_point_increase(rp, p, c);
}

// Returns value * (1 - g)^periods, rounded down, by repeated squaring.
FOLLOWED_ONCE __u32 decayed_q24(__u32 value_q24, __u32 g_q24, __u32 periods) {
  __u64 value_q31 = (__u64)value_q24 << 7, power_q31 = (__u64)(ONE_Q24 - g_q24) << 7;

  for (int bit = 0; bit < 32 && periods; bit++) {
    if (periods & 1)
      value_q31 = (value_q31 * power_q31) >> 31;
    power_q31 = (power_q31 * power_q31) >> 31;
    periods >>= 1;
  }
  return value_q31 >> 7;
}

// Raises alpha for so many CNPs (SIGCOMM'15, equation 1).
static __always_inline void reaction_point_raise_alpha(struct reaction_point *rp, const struct dcqcn_params *p,
                                                       __u32 cnps) {
  rp->alpha_q24 = ONE_Q24 - decayed_q24(ONE_Q24 - rp->alpha_q24, p->g_q24, cnps);
}

// Cuts the rate at a CNP, restarts timers and stages, and returns the rate before the cut. The target follows at every
// cut in SIGCOMM'15; NVIDIA's NICs (CLAMP_TGT_RATE) and HPCC's simulator (CLAMP_TARGET_RATE) by default keep it until
// an increase has happened since. A flow at R_max has no rate limiter, and its first CNP allocates one (mstflint on
// rpg_max_rate and rate_to_set_on_first_cnp).
static __always_inline __u64 reaction_point_on_cnp(struct reaction_point *rp, const struct dcqcn_params *p, __u32 now) {
  bool anew = !rp->was_cut || (rp->R_C == p->R_max && p->alpha_initial_q24);
  if (rp->R_C == p->R_max && p->rate_on_first_cnp && p->rate_on_first_cnp < p->R_max)
    rp->R_C = rp->R_T = p->rate_on_first_cnp;
  if (anew) {
    rp->alpha_q24 = p->alpha_initial_q24 ? p->alpha_initial_q24 : ONE_Q24;
    rp->alpha_us = now;
    rp->was_cut = 1;
  }
  __u64 before = rp->R_C;
  if (p->clamp_target || rp->byte_stage || (p->clamp_target_after_timer && rp->timer_stage))
    rp->R_T = before;
  rp->R_C -= times_q24(rp->R_C, rp->alpha_q24) >> 1;
  if (rp->R_C < p->R_min)
    rp->R_C = p->R_min;
  if (p->alpha_by_timer) {
    rp->heard_cnp = !anew; // alpha rises with the next CNP (HPCC, cnp_received_mlx)
  } else {
    reaction_point_raise_alpha(rp, p, 1);
    rp->alpha_us = now;
  }
  rp->timer_stage = rp->byte_stage = 0;
  rp->bytes = 0;
  rp->increased_us = now;
  return before;
}

struct increases {
  struct reaction_point *rp;
  const struct dcqcn_params *p;
  struct dcqcn_counters *c;
};

// Applies one of a series of overdue increases. Returns 1, which ends the series, at R_max: there is no more to
// increase.
static long reaction_point_next_of_series(__u32 turn, void *series) {
  struct increases *of = series;
  (void)turn;
  if (of->rp->R_C == of->p->R_max)
    return 1;
  reaction_point_next_stage(of->rp, of->p, of->c);
  return 0;
}

// Applies a series of overdue increases: in the kernel MAX_TURNS at most.
static __always_inline void reaction_point_next_stages(struct increases *series, __u32 stages) {
#ifdef __bpf__
  bpf_loop(stages < MAX_TURNS ? stages : MAX_TURNS, reaction_point_next_of_series, series, 0);
#else
  for (__u32 turn = 0; turn < stages && !reaction_point_next_of_series(turn, series); turn++)
    ;
#endif
}

// Applies the events of a NIC's timers since the last ACK. Timers also run while a flow is idle: alpha decays, and the
// rate rises until it is R_max.
static __always_inline void reaction_point_run_timers(struct reaction_point *rp, const struct dcqcn_params *p,
                                                      struct dcqcn_counters *c, __u32 now) {
  if (!rp->was_cut) {
    rp->alpha_us = rp->increased_us = now;
    return;
  }
  if (now - rp->alpha_us >= p->alpha_timer_us) {
    __u32 periods = (now - rp->alpha_us) / p->alpha_timer_us;
    __u32 raised = rp->heard_cnp < periods ? rp->heard_cnp : periods;
    rp->alpha_us += periods * p->alpha_timer_us;
    rp->heard_cnp -= raised;
    reaction_point_raise_alpha(rp, p, raised);
    rp->alpha_q24 = decayed_q24(rp->alpha_q24, p->g_q24, periods - raised);
  }
  if (now - rp->increased_us >= p->T_us) {
    __u32 stages = (now - rp->increased_us) / p->T_us;
    struct increases series = {rp, p, c};
    rp->increased_us += stages * p->T_us;
    reaction_point_next_stages(&series, stages);
  }
}

// Applies one increase event for each `byte_counter_bytes` acknowledged; the remainder counts towards the next event.
static __always_inline void reaction_point_count_bytes(struct reaction_point *rp, const struct dcqcn_params *p,
                                                       struct dcqcn_counters *c, __u64 acked_bytes) {
  if (!p->byte_counter_bytes)
    return;
  rp->bytes += acked_bytes;
  for (int i = 0; i < MAX_BYTE_EVENTS && rp->bytes >= p->byte_counter_bytes; i++) {
    rp->bytes -= p->byte_counter_bytes;
    if (rp->byte_stage < 0xffff)
      rp->byte_stage++;
    reaction_point_increase(rp, p, c);
  }
}

#endif
