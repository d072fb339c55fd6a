// SPDX-License-Identifier: Apache-2.0
// Hosts: the queue pairs, TCP connections and flows with windows of their NICs, and the turns in which these send.
#pragma once

#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/roce/roce_receiver.hpp"
#include "roundabout/models/packets/native/roce/roce_sender.hpp"
#include "roundabout/models/packets/native/switches/forwarding.hpp"
#include "roundabout/models/packets/native/tcp/stack.hpp"
#include "roundabout/models/packets/native/window/window_sender.hpp"

#include <memory>
#include <span>
#include <vector>

namespace packets {

class Jobs;

class Hosts {
  struct MltcpJobDeleter {
    void operator()(mltcp_job *job) const { mltcp_job_destroy(job); }
  };
  std::vector<std::unique_ptr<mltcp_job, MltcpJobDeleter>> mltcp_jobs_; // They outlive their members.

public:
  Hosts(EventQueue &events, Random &random, const nic_plan &nic, Fabric &fabric, Forwarding &forwarding,
        std::size_t count, Jobs &jobs);
  Hosts(const Hosts &) = delete;
  ~Hosts();

  // Adds a queue pair on a route of ports there and back, both empty within a host.
  std::uint32_t add_queue_pair(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                               std::uint32_t from_host, std::uint32_t to_host, const reaction_plan *plan);
  // Adds a TCP connection in the same way; its number is that of the queue pair of its bytes.
  std::uint32_t add_connection(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                               std::uint32_t from_host, std::uint32_t to_host, const tcp_plan &plan);
  // Adds a flow with a window in the same way.
  std::uint32_t add_window_flow(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                                std::uint32_t from_host, std::uint32_t to_host, const window_plan &plan);
  // Adds another queue pair, connection or flow like `pair` during the simulation, which invalidates references to
  // them.
  std::uint32_t add_queue_pair_like(std::uint32_t pair, const reaction_plan *plan);

  // From an instant on, a queue pair and those that are added like it take these routes. Their first ports stay.
  void change_route(std::uint32_t pair, Picos at, std::span<const std::uint32_t> out,
                    std::span<const std::uint32_t> back);

  // Adds a job of MLTCP, which counts the bytes of all queue pairs and connections that join it.
  std::uint32_t add_mltcp_job(const mltcp_plan &plan);
  void join(std::uint32_t pair, std::uint32_t mltcp_job);

  void begin(); // schedules changes of routes

  // Sends the message from `begin` to `end` of the pair's stream, whose bytes are created evenly over `length`.
  void post(std::uint32_t pair, Bytes begin, Bytes end, Picos length, Picos now);
  void stop(std::uint32_t pair);        // after its job has departed
  void shake_hands(std::uint32_t pair); // gives a TCP connection the round-trip time of an empty network
  // Makes an idle pair a new connection. Its message up to `end` of the stream follows after an empty round trip.
  void open(std::uint32_t pair, Bytes end, Picos now);

  // Events, and calls of Forwarding.
  void on_timer(std::uint32_t pair, Picos now);
  void handle(const CnpEvent &event, Picos now) { roce_sender_.handle(event, now); }
  void handle(const HandshakeEvent &event, Picos now);
  void handle(const RouteEvent &event, Picos now);
  void receive(std::uint32_t packet, Picos now);
  std::uint32_t send_next(Port &port, int priority, Picos now); // kNone if the pair has nothing to send

  // Calls of senders and receivers.
  Bytes allowed_by_feeders(const QueuePair &pair) const;    // bytes of the message that the pair may have sent
  void advance(std::uint32_t pair, Bytes bytes, Picos now); // The next bytes of the stream have arrived.
  void complete(const QueuePair &pair, Picos now);          // The receiver has acknowledged the message.
  // These return a packet's place in the pool: of data, which begins on the pair's route, or of an ACK, NACK or CNP of
  // what the pair has received.
  std::uint32_t make_data(std::uint32_t pair, Bytes seq, Bytes payload, Bytes header_bytes, Picos now);
  std::uint32_t make_reply(std::uint32_t pair, Kind kind, Bytes frame_bytes);
  void send_reply(std::uint32_t reply, Picos now);
  void request_turn(std::uint32_t pair, Picos now); // at the NIC
  void keep_turn(std::uint32_t pair);               // while the NIC sends its packet: it is next again
  void rejoin_turn(std::uint32_t pair);             // in the same case, but behind all others

  std::uint32_t index_of(const QueuePair &pair) const { return static_cast<std::uint32_t>(&pair - pairs.data()); }

  std::vector<QueuePair> pairs;
  std::vector<host_sample> counters; // by host
  TcpStack tcp;
  WindowSender window;

private:
  struct RouteChange {
    Picos at;
    std::uint32_t pair, out, back; // first hops
  };

  void attach(QueuePair &pair, const reaction_plan &plan);
  std::uint32_t make_packet(std::uint32_t pair, Kind kind, Bytes seq, Bytes frame_bytes);
  void wake(std::uint32_t pair, Picos now); // The sender may have something to send.

  EventQueue &events_;
  Random &random_;
  const nic_plan &nic_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Jobs &jobs_;
  RoceSender roce_sender_;
  RoceReceiver roce_receiver_;
  std::vector<RouteChange> route_changes_; // in the order of instants, once it has begun
};

} // namespace packets
