// SPDX-License-Identifier: Apache-2.0
// A TCP connection, both ends of it: plain data of its sender and receiver. Bytes are counted in its queue pair.
#pragma once

#include "roundabout/models/packets/native/event_queue.hpp"
#include "roundabout/models/packets/native/tcp/congestion_control.h"
#include "roundabout/models/packets/native/tcp/scoreboard.hpp"

namespace packets {

// The state of recovery from losses and marks (RFC 5681, RFC 6675; names are those of Linux).
enum class TcpState : std::uint8_t { kOpen, kCwr, kRecovery, kLoss };
enum class TcpTimer : std::uint8_t { kOff, kTimeout, kProbe, kReorder };

inline constexpr std::size_t kBlocks = 3; // that an acknowledgement has room for beside timestamps (RFC 2018)

struct Interval {
  Bytes begin = -1, end = -1;
};

struct TcpCounters {
  std::int64_t timeouts = 0, probes = 0, recoveries = 0, reductions_by_marks = 0, acks = 0;
};

struct Connection {
  tcp_plan plan;
  congestion_control *control = nullptr;
  tcp_view view{};
  TcpCounters counters;

  // The sender.
  Scoreboard board;
  TcpState state = TcpState::kOpen;
  Bytes high_seq = 0;       // what was sent when the present reduction or recovery began
  Bytes cwnd_usage_seq = 0; // a window's use is judged up to here
  Bytes probed_seq = -1;    // what was sent when the tail-loss probe went; below 0: none is out
  bool probe_was_new = false, sends_cwr = false, is_stopped = false;
  Interval known[kBlocks] = {}; // the last blocks that were selectively acknowledged
  std::uint32_t burst = 0;      // segments of the present burst that the NIC has not sent yet
  std::uint32_t prior_cwnd = 0, prr_delivered = 0, prr_out = 0; // proportional rate reduction (RFC 6937)
  std::uint32_t lost = 0;                                       // segments, in all
  Picos srtt = 0, rttvar = 0, rto = 0, min_rtt = 0;
  Picos rack_sent_at = -1, rack_rtt = 0; // of the delivered segment that was sent last (RFC 8985)
  Bytes rack_end = 0;
  Picos last_sent_at = -1, paced_until = 0;
  int backoff = 0;
  TcpTimer timer = TcpTimer::kOff;
  Picos timer_at = kNever, send_at = kNever, ready_at = kNever, ack_at = kNever;

  // The receiver. Delivered in order is what the queue pair expects next.
  std::vector<Interval> beyond; // arrived out of order, in ascending order
  std::size_t newest = 0;       // among them, that of the latest segment
  std::int64_t unacknowledged = 0;
  Bytes window = 0;
  int quick_acks = 0;
  Picos received_at = -1;
  bool echoes = false, saw_ce = false; // ECE (RFC 3168); the last segment's CE (RFC 8257)
};

// Moves the connection's event only forward in time. A timer that was postponed is checked when the event fires.
inline void schedule_timers(EventQueue &events, std::uint32_t pair, const Connection &c) {
  const Picos at = std::min({c.timer_at, c.send_at, c.ready_at, c.ack_at});
  const EventTarget target{EventKind::kQueuePair, pair};
  if (at < events.at(target))
    events.set(target, at);
}

} // namespace packets
