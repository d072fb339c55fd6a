// SPDX-License-Identifier: Apache-2.0
// The TCP stack of all hosts: its connections, with the sender and the receiver that work on them.
#pragma once

#include "roundabout/models/packets/native/tcp/tcp_receiver.hpp"
#include "roundabout/models/packets/native/tcp/tcp_sender.hpp"

#include <vector>

namespace packets {

class TcpStack {
public:
  TcpStack(EventQueue &events, Random &random, Fabric &fabric, Forwarding &forwarding, Hosts &hosts);
  TcpStack(const TcpStack &) = delete;
  ~TcpStack();

  // Adds a connection. The bytes of its stream are those of a queue pair.
  std::uint32_t add(const tcp_plan &plan, std::uint32_t host);
  // Makes an idle connection a new one after its handshake, whose stream goes on at `begin`.
  void renew(std::uint32_t connection, Bytes begin);
  void note_handshake(std::uint32_t connection, Picos rtt);
  void join(std::uint32_t connection, mltcp_job *job); // makes it a member of a job of MLTCP

  // Each takes the number of the queue pair.
  void wake(std::uint32_t pair, Picos now) { sender_.wake(pair, now); }
  void stop(std::uint32_t pair); // after its job has departed
  void on_timer(std::uint32_t pair, Picos now);
  std::uint32_t send_next(std::uint32_t pair, Picos now) { return sender_.send_next(pair, now); }

  void take_segment(const Packet &packet, Picos now) { receiver_.take_segment(packet, now); }
  void take_ack(const Packet &packet, std::uint32_t which, Picos now) {
    sender_.take_ack(packet, receiver_.blocks_of(which), now);
  }

  const Connection &operator[](std::uint32_t index) const { return connections_[index]; }

private:
  void begin(Connection &c, const tcp_plan &plan, std::uint32_t host, Bytes begin_at);

  std::vector<Connection> connections_;
  TcpSender sender_;
  TcpReceiver receiver_;
  EventQueue &events_;
  Hosts &hosts_;
};

} // namespace packets
