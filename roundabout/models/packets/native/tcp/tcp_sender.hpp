// SPDX-License-Identifier: Apache-2.0
// The sender of TCP connections: what a window allows, bursts, pacing, acknowledgements and timers, as in Linux.
#pragma once

#include "roundabout/models/packets/native/switches/forwarding.hpp"
#include "roundabout/models/packets/native/tcp/connection.hpp"

#include <vector>

namespace packets {

struct QueuePair;

class TcpSender {
public:
  TcpSender(EventQueue &events, Random &random, Fabric &fabric, Forwarding &forwarding, Hosts &hosts,
            std::vector<Connection> &connections)
      : events_(events), random_(random), fabric_(fabric), forwarding_(forwarding), hosts_(hosts),
        connections_(connections) {}

  void wake(std::uint32_t pair, Picos now);               // There may be more to send.
  std::uint32_t send_next(std::uint32_t pair, Picos now); // at its turn; kNone if there is nothing to send
  void take_ack(const Packet &packet, const Interval *blocks, Picos now); // with its selective acknowledgements
  void on_timer(std::uint32_t pair, Connection &c, Picos now);            // The timer of losses has expired.
  void request_turn(QueuePair &pair, Connection &c, Picos now);           // at the NIC, if there is something to send

private:
  // Returns the bytes of the message that the program has written, and sets when it writes more.
  Bytes written(QueuePair &pair, const Connection &c, Picos now, Picos &next_at) const;
  // Returns the segments that may be sent now: a lost one, or a burst of new ones.
  std::uint32_t next_burst(QueuePair &pair, Connection &c, Picos now);
  Bytes burst_segments(const Connection &c) const;
  // Returns true if a small burst waits for more room in the window (tcp_tso_should_defer).
  bool may_defer(const QueuePair &pair, Connection &c, std::uint32_t room, Picos now) const;
  double pacing_rate(const Connection &c) const; // in bytes/s
  std::uint32_t send(std::uint32_t pair, Connection &c, std::uint32_t segment, Picos now);
  void validate_window(const QueuePair &pair, Connection &c, bool is_limited);
  void restart_after_idle(Connection &c, Picos now); // RFC 2861, as in Linux

  void set_timer(Connection &c, TcpTimer timer, Picos at);
  void arm_timer(Connection &c, Picos now); // for a tail-loss probe if one is allowed, otherwise for a timeout
  void on_timeout(QueuePair &pair, Connection &c, Picos now);
  // Sends a segment whose acknowledgement shows losses (RFC 8985, section 7.3): a new one if there is any.
  void on_probe(std::uint32_t pair, Connection &c, Picos now);
  void on_reorder(QueuePair &pair, Connection &c, Picos now);

  EventQueue &events_;
  Random &random_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<Connection> &connections_;
};

} // namespace packets
