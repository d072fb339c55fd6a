// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/tcp/stack.hpp"

#include "roundabout/models/packets/native/hosts.hpp"
#include "roundabout/models/packets/native/tcp/loss_recovery.hpp"

namespace packets {

TcpStack::TcpStack(EventQueue &events, Random &random, Fabric &fabric, Forwarding &forwarding, Hosts &hosts)
    : sender_(events, random, fabric, forwarding, hosts, connections_),
      receiver_(events, fabric, forwarding, hosts, connections_), events_(events), hosts_(hosts) {}

TcpStack::~TcpStack() {
  for (Connection &each : connections_)
    congestion_destroy(each.control);
}

std::uint32_t TcpStack::add(const tcp_plan &plan, std::uint32_t host) {
  Connection c;
  begin(c, plan, host, 0);
  connections_.push_back(std::move(c));
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

void TcpStack::begin(Connection &c, const tcp_plan &plan, std::uint32_t host, Bytes begin_at) {
  c.plan = plan;
  c.view.host = host;
  c.view.snd_una = c.view.snd_nxt = static_cast<std::uint32_t>(begin_at);
  c.view.cwnd = static_cast<std::uint32_t>(plan.initial_window);
  c.view.ssthresh = INFINITE_SSTHRESH;
  c.view.mss_bytes = static_cast<std::uint32_t>(plan.mss_bytes);
  c.view.tso_bytes = static_cast<std::uint32_t>(plan.tso_bytes);
  c.view.is_paced = plan.is_paced != 0;
  c.rto = plan.rto_initial_ps;
  c.window = plan.first_window_bytes;
  c.control = congestion_create(&plan.congestion, &c.view);
}

void TcpStack::renew(std::uint32_t connection, Bytes begin_at) {
  Connection &former = connections_[connection];
  Connection c;
  c.board = std::move(former.board); // It is empty, and its memory is used again.
  begin(c, former.plan, former.view.host, begin_at);
  congestion_take_member(c.control, former.control);
  congestion_destroy(former.control);
  former = std::move(c);
}

void TcpStack::note_handshake(std::uint32_t connection, Picos rtt) { update_rtt(connections_[connection], rtt); }

void TcpStack::join(std::uint32_t connection, mltcp_job *job) {
  congestion_join(connections_[connection].control, job);
}

void TcpStack::stop(std::uint32_t index) {
  Connection &c = connections_[hosts_.pairs[index].tcp];
  if (!c.is_stopped)
    congestion_leave(c.control);
  c.is_stopped = true;
  c.burst = 0;
  c.timer = TcpTimer::kOff;
  c.timer_at = c.send_at = c.ready_at = c.ack_at = kNever;
}

void TcpStack::on_timer(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  Connection &c = connections_[pair.tcp];
  events_.cancel({EventKind::kQueuePair, index});
  if (c.ack_at <= now)
    receiver_.acknowledge(index, c, now, false);
  if (c.timer_at <= now)
    sender_.on_timer(index, c, now);
  if (c.ready_at <= now) {
    c.ready_at = kNever;
    if (!pair.waits_for_turn)
      hosts_.request_turn(index, now);
  } else if (!pair.stopped) {
    sender_.request_turn(pair, c, now);
  }
  schedule_timers(events_, index, c);
}

} // namespace packets
