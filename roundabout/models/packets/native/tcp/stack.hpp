// SPDX-License-Identifier: Apache-2.0
// TCP over the network's ports: what Linux' stack does with segments, acknowledgements and timers.
#pragma once

#include "roundabout/models/packets/native/switches/forwarding.hpp"
#include "roundabout/models/packets/native/tcp/connection.hpp"

#include <span>

namespace packets {

class Hosts;
struct QueuePair;

class TcpStack {
public:
  TcpStack(EventQueue &events, Random &random, Fabric &fabric, Forwarding &forwarding, Hosts &hosts)
      : events_(events), random_(random), fabric_(fabric), forwarding_(forwarding), hosts_(hosts) {}
  TcpStack(const TcpStack &) = delete;
  ~TcpStack();

  // A connection whose bytes are those of a queue pair.
  std::uint32_t add(const TcpPlan &plan, std::uint32_t host);

  // Makes it a new connection, as it is after its handshake, whose stream goes on at `begin`. Nothing is under way.
  void renew(std::uint32_t connection, Bytes begin);

  void note_handshake(std::uint32_t connection, Picos rtt);

  void join(std::uint32_t connection, mltcp_job *job); // makes it one of MLTCP

  // Each takes the number of the queue pair.
  void wake(std::uint32_t pair, Picos now); // there is more to send
  void stop(std::uint32_t pair);            // its job has ended
  void on_timer(std::uint32_t pair, Picos now);
  std::uint32_t send_next(std::uint32_t pair, Picos now); // its turn at the NIC; kNone if there is nothing to send

  void take_segment(const Packet &packet, Picos now);
  void take_ack(const Packet &packet, std::uint32_t which, Picos now);

  const Connection &operator[](std::uint32_t index) const { return connections_[index]; }

private:
  struct Blocks {
    Interval blocks[kBlocks];
  };

  // When what an acknowledgement covers was sent; below 0: nothing of it was sent only once.
  struct Samples {
    Picos first_sent_at = -1, last_sent_at = -1;
    bool has_resent = false;
  };

  void begin(Connection &c, const TcpPlan &plan, std::uint32_t host, Bytes begin_at);

  // The sender.
  void see(QueuePair &pair, Connection &c, Picos now);
  Bytes written(QueuePair &pair, const Connection &c, Picos now, Picos &next_at) const;
  std::uint32_t next_burst(QueuePair &pair, Connection &c, Picos now);
  Bytes burst_segments(const Connection &c) const;
  bool may_defer(const QueuePair &pair, Connection &c, std::uint32_t room, Picos now) const;
  double pacing_rate(const Connection &c) const;
  std::uint32_t send(std::uint32_t pair, Connection &c, std::uint32_t segment, Picos now);
  void validate_window(const QueuePair &pair, Connection &c, bool is_limited);
  void restart_after_idle(Connection &c, Picos now);

  void note_delivered(Connection &c, const Segment &segment, Picos now, Samples &samples);
  void mark_sacked(Connection &c, const Interval &block, Picos now, Samples &samples);
  void update_rtt(Connection &c, Picos rtt);
  Picos find_losses(Connection &c, Picos now);
  void begin_reduction(QueuePair &pair, Connection &c);
  void end_reduction(Connection &c);
  void change_state(QueuePair &pair, Connection &c, bool echo);
  void reduce(Connection &c, std::uint32_t delivered, bool advanced, bool has_losses);
  void end_probe(QueuePair &pair, Connection &c, const Packet &packet, std::uint32_t delivered);

  void set_timer(Connection &c, TcpTimer timer, Picos at);
  void arm_timer(Connection &c, Picos now);
  void schedule(std::uint32_t pair, const Connection &c);
  void on_timeout(QueuePair &pair, Connection &c, Picos now);
  void on_probe(std::uint32_t pair, Connection &c, Picos now);
  void on_reorder(QueuePair &pair, Connection &c, Picos now);

  // The receiver.
  void acknowledge(std::uint32_t pair, Connection &c, Picos now, bool is_duplicate);
  bool insert_beyond(Connection &c, Bytes begin, Bytes end);

  EventQueue &events_;
  Random &random_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<Connection> connections_;
  std::vector<Blocks> blocks_; // of acknowledgements, by packet
};

} // namespace packets
