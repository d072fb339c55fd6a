/* SPDX-License-Identifier: Apache-2.0 */
/* Congestion controls with a window and the delay of each packet as plain C: Swift, NSCC, and MLTCP over Swift. The
 * transports' own headers (transports/swift, transports/nscc, transports/mltcp) do the work; they are C alone, so C++
 * calls them through these functions. Windows are in bytes of payload. */
#ifndef ROUNDABOUT_PACKETS_WINDOW_CONTROL_H
#define ROUNDABOUT_PACKETS_WINDOW_CONTROL_H

#include "roundabout/models/packets/native/tcp/mltcp_member.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A flow's path without queues. */
struct window_path {
  int64_t payload_bytes; /* of a full packet */
  int64_t round_trip_ps; /* of a full packet and its ACK */
  uint32_t links;
};

/* An ACK of bytes that none has acknowledged before. */
struct window_ack {
  int64_t now_ps, rtt_ps;
  int64_t bytes, in_flight_bytes; /* in_flight: without these */
  int is_marked;
};

struct window_control; /* of one flow */

struct window_control *window_create(const struct window_plan *plan, const struct window_path *path);
void window_begin(struct window_control *control, int64_t now_ps);             /* anew, as a flow without history */
void window_join(struct window_control *control, struct mltcp_job *mltcp_job); /* makes it MLTCP */
void window_leave(struct window_control *control);                             /* its job has ended */
void window_destroy(struct window_control *control);

void window_on_ack(struct window_control *control, const struct window_ack *ack);
void window_on_loss(struct window_control *control, int64_t now_ps, int64_t bytes, int64_t in_flight_bytes);
void window_on_timeout(struct window_control *control, int64_t now_ps, int64_t bytes);

int64_t window_bytes(const struct window_control *control);
/* Returns the time between two packets where the window is below one packet, else 0. */
int64_t window_pacing_ps(const struct window_control *control);
void window_read(const struct window_control *control, struct window_result *into);

#ifdef __cplusplus
}
#endif

#endif
