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

struct reaction *reaction_create(const struct reaction_plan *plan);
void reaction_begin(struct reaction *reaction);                       /* anew, as a flow that has sent nothing */
void reaction_join(struct reaction *reaction, struct mltcp_job *job); /* of MLTCP */
void reaction_leave(struct reaction *reaction);                       /* its job has ended */
void reaction_destroy(struct reaction *reaction);

/* Counts bytes that are sent, runs the timers up to now, and returns R_C in bytes/s. */
uint64_t reaction_on_send(struct reaction *reaction, int64_t now_ps, uint64_t bytes);
int reaction_is_limited(const struct reaction *reaction); /* below R_max */
void reaction_on_cnp(struct reaction *reaction, int64_t now_ps);
void reaction_read(const struct reaction *reaction, struct pair_result *into); /* its counters and its state */

#ifdef __cplusplus
}
#endif

#endif
