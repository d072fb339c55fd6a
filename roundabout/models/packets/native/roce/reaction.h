/* SPDX-License-Identifier: Apache-2.0 */
/* DCQCN's reaction point and MLTCP over it, as the eBPF programs have them (transports/dcqcn/reaction_point.h,
 * transports/mltcp). Those headers are C alone, so C++ calls them through these functions. */
#ifndef ROUNDABOUT_PACKETS_ROCE_REACTION_H
#define ROUNDABOUT_PACKETS_ROCE_REACTION_H

#include "roundabout/models/packets/native/tcp/mltcp_member.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct reaction; /* a reaction point with its parameters and counters */

/* Parameters in the units of dcqcn_params.h, but times in ps. */
struct reaction_plan {
  int64_t T_ps, alpha_timer_ps, cnp_gap_ps;
  uint64_t byte_counter_bytes, R_AI, R_HAI, R_min, R_max;
  uint32_t F, g_q24, clamp_target, clamp_target_after_timer, hyper_by_stage, alpha_by_timer, alpha_initial_q24;
  uint64_t rate_on_first_cnp;
  uint32_t cnp_scope, retransmission; /* of the NIC, and none of the reaction point's */
};

enum { CNP_PER_QP, CNP_PER_HOST, CNP_PER_PORT };
enum { GO_BACK_N, SELECTIVE_REPEAT };
enum { REACTION_COUNTERS = 6 }; /* cnps; fast, additive and hyper increases; R_C; alpha_q24 */

struct reaction *reaction_create(const struct reaction_plan *plan);
void reaction_begin(struct reaction *reaction);                       /* anew, as a flow that has sent nothing */
void reaction_join(struct reaction *reaction, struct mltcp_job *job); /* of MLTCP */
void reaction_leave(struct reaction *reaction);                       /* its job has ended */
void reaction_destroy(struct reaction *reaction);

/* Counts bytes that are sent, runs the timers up to now, and returns R_C in bytes/s. */
uint64_t reaction_on_send(struct reaction *reaction, int64_t now_ps, uint64_t bytes);
int reaction_is_limited(const struct reaction *reaction); /* below R_max */
void reaction_on_cnp(struct reaction *reaction, int64_t now_ps);
void reaction_counters(const struct reaction *reaction, uint64_t into[REACTION_COUNTERS]);

#ifdef __cplusplus
}
#endif

#endif
