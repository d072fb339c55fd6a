// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiver's half of DCTCP (RFC 8257, section 3.2): each change of CE is echoed at once, so the share of echoes is
// the share of marks. A delayed ACK for segments of the other kind is sent first.
#ifndef ROUNDABOUT_DCTCP_ECHO_H
#define ROUNDABOUT_DCTCP_ECHO_H

#include "transport.h"

struct echo {
  __u32 prior_rcv_nxt;
  __u8 ce;
};

// Begins without an echo.
static __always_inline void echo_begin(struct echo *echo, struct sock *sk) {
  echo->prior_rcv_nxt = tcp_of(sk)->rcv_nxt;
  echo->ce = 0;
}

// Sets whether the next ACK echoes CE.
static __always_inline void echo_next(struct tcp_sock *tp, __u8 ce) {
  if (ce)
    tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
  else
    tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

// Handles a received segment with or without CE.
static __always_inline void echo_event(struct echo *echo, struct sock *sk, enum tcp_ca_event ev) {
  struct tcp_sock *tp = tcp_of(sk);
  struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
  if (ev != CA_EVENT_ECN_IS_CE && ev != CA_EVENT_ECN_NO_CE)
    return;

  __u8 ce = ev == CA_EVENT_ECN_IS_CE;
  if (echo->ce != ce) {
    if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
      echo_next(tp, echo->ce);
      bpf_tcp_send_ack(tp, echo->prior_rcv_nxt);
    }
    icsk->icsk_ack.pending |= ICSK_ACK_NOW;
  }
  echo->prior_rcv_nxt = tp->rcv_nxt;
  echo->ce = ce;
  echo_next(tp, ce);
}

#endif
