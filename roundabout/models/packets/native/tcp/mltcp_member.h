/* SPDX-License-Identifier: Apache-2.0 */
/* A flow's part in its job, and F: the counterpart of transports/mltcp/job.h and window.h. */
#ifndef ROUNDABOUT_PACKETS_MLTCP_MEMBER_H
#define ROUNDABOUT_PACKETS_MLTCP_MEMBER_H

#include "roundabout/models/packets/native/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mltcp_job;    /* the bytes of an iteration, which several flows count together */
struct mltcp_member; /* a flow */

struct mltcp_job *mltcp_job_create(const struct mltcp_plan *plan);
void mltcp_job_destroy(struct mltcp_job *job);

struct mltcp_member *mltcp_join(struct mltcp_job *job);
void mltcp_leave(struct mltcp_member *member); /* frees it; the job of the last member restarts its count */

void mltcp_on_bytes(struct mltcp_member *member, int64_t now_ps, uint64_t bytes);

/* Returns the number of acknowledged segments that MLTCP reports to the base algorithm. */
uint32_t mltcp_acked(struct mltcp_member *member, int in_slow_start, uint32_t acked);
/* Returns the window or rate after a cut. `base` is the one after the base algorithm's own cut. */
uint64_t mltcp_cut(const struct mltcp_member *member, uint64_t before, uint64_t base);
/* Returns the step of an additive increase, such as DCQCN's R_AI, or R_HAI, times F. */
uint64_t mltcp_additive(const struct mltcp_member *member, uint64_t step);
uint64_t mltcp_R_HAI(const struct mltcp_member *member, uint64_t R_HAI);

uint32_t mltcp_F_q24(const struct mltcp_member *member);
uint64_t mltcp_iterations(const struct mltcp_member *member);
uint64_t mltcp_iteration_bytes(const struct mltcp_member *member);

#ifdef __cplusplus
}
#endif

#endif
