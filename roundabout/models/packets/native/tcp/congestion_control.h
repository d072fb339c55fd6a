/* SPDX-License-Identifier: Apache-2.0 */
/* Congestion control of TCP as plain C: a connection calls these functions at each ACK, loss and timeout. The
 * transports' own headers (transports/dctcp, transports/mltcp) do the work where they exist; they are C alone, so C++
 * calls them through here. */
#ifndef ROUNDABOUT_PACKETS_CONGESTION_CONTROL_H
#define ROUNDABOUT_PACKETS_CONGESTION_CONTROL_H

#include "mltcp_member.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INFINITE_SSTHRESH 0x7fffffffu

/* The state of a connection that its congestion control reads, and the windows that it sets. Names are those of Linux'
 * struct tcp_sock; windows and counts are in segments; counts and sequence numbers wrap. */
struct tcp_view {
  int64_t now_ps, srtt_ps, min_rtt_ps; /* 0: no sample yet */
  uint32_t host;                       /* the sender: hosts' clocks do not tick together */
  uint64_t bytes_acked;
  uint32_t snd_una, snd_nxt;
  uint32_t cwnd, ssthresh;
  uint32_t delivered, delivered_ce;
  uint32_t max_packets_out;
  uint32_t mss_bytes, tso_bytes;
  uint32_t is_cwnd_limited, is_paced;
};

/* The news of one ACK. */
struct tcp_ack {
  uint32_t acked;  /* newly acknowledged segments, cumulatively or selectively */
  uint32_t losses; /* segments newly marked as lost */
  int64_t rtt_ps;  /* of the last acknowledged segment that was sent once; below 0: none */
};

struct congestion_control; /* of one connection */

struct congestion_control *congestion_create(const struct congestion_plan *plan, struct tcp_view *view);
void congestion_join(struct congestion_control *cc, struct mltcp_job *job); /* makes it MLTCP over the algorithm */
/* A former control's member of MLTCP's job, which has none from then on. */
void congestion_take_member(struct congestion_control *cc, struct congestion_control *former);
void congestion_leave(struct congestion_control *cc); /* its connection is closed; MLTCP's job has a member less */
void congestion_destroy(struct congestion_control *cc);

/* Returns 1 if the algorithm sets the window at every ACK, also in recovery, as Linux' cong_control does. */
int congestion_owns_window(const struct congestion_control *cc);
/* Returns 1 if the algorithm needs each mark echoed (RFC 8257, section 3.2). */
int congestion_needs_accurate_echo(const struct congestion_control *cc);

/* Counts acknowledged bytes, for MLTCP. */
void congestion_on_bytes(struct congestion_control *cc, const struct tcp_view *view, uint64_t bytes);
/* Is called first for each ACK that acknowledges new segments. */
void congestion_on_ack(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack);
/* Is called after loss detection, only for algorithms that own the window. */
void congestion_set_window(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack);
/* Is called only for other algorithms, while nothing is lost, also after a timeout. */
void congestion_increase(struct congestion_control *cc, struct tcp_view *view, uint32_t acked);
/* Returns ssthresh after a loss or a mark. */
uint32_t congestion_ssthresh(struct congestion_control *cc, const struct tcp_view *view);
void congestion_on_timeout(struct congestion_control *cc, struct tcp_view *view);
/* It sends again after nothing was under way for so long. */
void congestion_on_idle(struct congestion_control *cc, struct tcp_view *view, int64_t idle_ps);

void congestion_read(const struct congestion_control *cc, struct connection_result *into); /* its state, and MLTCP's */

#ifdef __cplusplus
}
#endif

#endif
