// SPDX-License-Identifier: Apache-2.0
// Links, ports and RoCE NICs: every packet from the queue pair that sends it to the one that takes it.
#pragma once

#include "roundabout/models/packets/native/event_queue.hpp"
#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/roce/selective_repeat.hpp"
#include "roundabout/models/packets/native/switches/buffer.hpp"
#include "roundabout/models/packets/native/switches/red.hpp"
#include "roundabout/models/packets/native/switches/scheduler.hpp"
#include "roundabout/models/packets/native/tcp/stack.hpp"

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace packets {

class Jobs;

// As Python has it (roundabout/models/packets/network.py).
struct NicPlan {
  Bytes payload_bytes; // of a full packet
  Bytes header_bytes;  // of a frame beside its payload, as interfaces count it
  Bytes control_bytes; // of an ACK's, NACK's or CNP's frame, as interfaces count it
  Bytes around_bytes;  // what a frame takes of a link beyond that
  Bytes ack_bytes;     // between two acknowledgements of a message
  std::int64_t burst;  // packets that the rate limiter lets go at once
  double pace_jitter;  // width of the even spread of a burst's time, as a share of it
  Picos cnp_delay;     // in both NICs together, beside what links take
  Picos cnp_jitter;    // width of the even spread that is added to it
  Picos timeout;       // after which an unacknowledged message is sent again
  std::uint64_t seed;
};

// Cumulative, of one host's NIC.
struct HostCounters {
  std::int64_t marked = 0, cnps_sent = 0, cnps_handled = 0, out_of_sequence = 0;
};

class Network {
public:
  Network(EventQueue &events, const NicPlan &nic, std::span<const PortPlan> ports, std::size_t hosts);
  Network(const Network &) = delete;
  ~Network();

  // Before the first packet. A switch's ports share its memory; `headroom` is that of the link to the switch which is
  // each port's other direction.
  void share_buffer(const BufferPlan &plan, std::span<const std::uint32_t> ports, std::span<const Bytes> headroom);
  void weigh_queues(std::uint32_t port, std::span<const Bytes> quanta); // those of the lowest queues
  void use_red(std::uint32_t port, double weight);                      // between the port's thresholds

  void count_queues(); // what each queue sends, too

  // A queue pair on a route of ports there and back, both empty within a host. A host's packets get a counter of marks
  // at each port of their route.
  std::uint32_t add_pair(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                         std::uint32_t from_host, std::uint32_t to_host, const reaction_plan *plan);
  // The same for TCP.
  std::uint32_t add_connection(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                               std::uint32_t from_host, std::uint32_t to_host, const TcpPlan &plan);

  // One more like it, while the engine runs. References to pairs and connections do not outlast it.
  std::uint32_t add_pair_like(std::uint32_t pair, const reaction_plan *plan);

  // A job of MLTCP, of which queue pairs or connections are: they count its bytes together.
  std::uint32_t add_mltcp_job(const mltcp_plan &plan);
  void join(std::uint32_t pair, std::uint32_t mltcp_job);

  void handle(EventTarget target, Picos now, Jobs &jobs);

  // The message from `begin` to `end` of the pair's stream, whose bytes come into being over `length`.
  void post(std::uint32_t pair, Bytes begin, Bytes end, Picos length, Picos now);
  void stop(std::uint32_t pair);        // a job has departed
  void shake_hands(std::uint32_t pair); // a TCP connection knows the time of an empty round trip
  // Makes a pair on which nothing is under way a new connection, whose message ends at `end` of the stream and follows
  // after a round trip over an empty network.
  void open(std::uint32_t pair, Bytes end, Picos now);

  QueuePair &pair(std::uint32_t index) { return pairs_[index]; }
  std::uint32_t index_of(const QueuePair &pair) const { return static_cast<std::uint32_t>(&pair - pairs_.data()); }
  std::size_t pair_count() const { return pairs_.size(); }
  const TcpStack &tcp() const { return tcp_; }
  const std::vector<HostCounters> &hosts() const { return hosts_; }

  struct MarkCounter {
    std::uint32_t port, host;
    std::int64_t marks;
  };
  const std::vector<MarkCounter> &mark_counters() const { return marks_; }
  std::size_t port_count() const { return ports_.size(); }
  bool is_host(std::size_t port) const { return ports_[port].is_host; } // that the port is one's
  QueueCounters counters(std::size_t port, Picos now) const;
  QueueCounters queue_counters(std::size_t port, int queue, Picos now) const;
  Bytes backlog(std::size_t port) const;
  Bytes queue_backlog(std::size_t port, int queue) const { return ports_[port].queues[queue].bytes; }
  Picos paused_since(std::size_t port) const; // the first of its queues that is paused now; -1 if none is
  double red_average(std::size_t port, int queue) const;
  const std::vector<SharedBuffer> &buffers() const { return buffers_; }
  std::int64_t hops() const { return hops_; } // packets that ports have sent
  std::size_t pool_size() const { return pool_.size(); }

private:
  friend class TcpStack; // which sends by the same NICs

  struct MltcpJobEnd {
    void operator()(mltcp_job *job) const { mltcp_job_destroy(job); }
  };
  using MltcpJob = std::unique_ptr<mltcp_job, MltcpJobEnd>;

  struct Red {
    RedPlan plan;
    RedQueue queues[kPriorities];
    bool signals = false; // the packet that has just come
  };

  std::uint32_t add_route(std::span<const std::uint32_t> ports, std::uint32_t host);
  void attach(QueuePair &pair, const reaction_plan &plan);
  std::uint32_t notification_point(const QueuePair &pair, std::uint32_t scope);

  void arrive(std::uint32_t port, Picos now, Jobs &jobs);
  void enqueue(std::uint32_t port, std::uint32_t packet, Picos now);
  bool drops_early(Port &port, Packet &packet, Picos now);
  bool enter_buffer(Port &port, const Packet &packet, Picos now);
  bool enter_shared_buffer(Port &port, const Packet &packet, Picos now);
  Picos time_on_link(const Port &port, const Packet &packet) const;
  void wake(std::uint32_t port, Picos now);
  void start(std::uint32_t port, Picos now);
  void send(std::uint32_t port, std::uint32_t packet, Picos now);
  int choose(Port &port, std::uint8_t may);
  std::uint32_t take_next(Port &port, int priority, Picos now);
  void queue_is_empty(Port &port, const Packet &packet, Picos now);
  void leave_buffer(const Port &port, const Packet &packet, Picos now);
  void leave_shared_buffer(const Port &port, const Packet &packet, Picos now);
  void pause(std::uint32_t port, int priority, bool on, Picos now);
  bool marks(const Port &port, Bytes queued);
  void mark(Port &port, Packet &packet);

  Bytes allowed_by_feeders(const QueuePair &pair) const;
  void plan(std::uint32_t pair, Picos now);
  void due(std::uint32_t pair, Picos now, Jobs &jobs);
  void request_turn(std::uint32_t pair, Picos now); // at the NIC
  void keep_turn(std::uint32_t pair);               // while the NIC starts a packet of its: the next one is its too
  void rejoin_turn(std::uint32_t pair);             // the same, but after all others
  std::uint32_t emit(std::uint32_t pair, Picos now);
  void pace(QueuePair &pair, Bytes payload, Picos now);
  void limit(QueuePair &pair, std::uint64_t rate);
  Bytes next_seq(QueuePair &pair); // of the packet that it sends now
  void time_out(std::uint32_t pair, Picos now);
  void deliver(std::uint32_t packet, Picos now, Jobs &jobs);
  void take_data(const Packet &packet, Picos now, Jobs &jobs);
  void keep_out_of_order(const Packet &packet, Picos now);
  void advance(std::uint32_t pair, Bytes payload, Picos now, Jobs &jobs);
  void acknowledge(const Packet &packet, Bytes sack, Picos now, Jobs &jobs);
  std::uint32_t answer(std::uint32_t pair, Kind kind, Picos now);
  void hear_cnp(std::uint32_t pair, Picos now);

  void handle_delayed(const CnpEvent &event, Picos now);
  void handle_delayed(const PfcEvent &event, Picos now);
  void handle_delayed(const HandshakeEvent &event, Picos now);

  Picos empty_round_trip(const QueuePair &pair) const;

  EventQueue &events_;
  NicPlan nic_;
  Random random_;
  PacketPool pool_;
  std::vector<Port> ports_;
  std::vector<SharedBuffer> buffers_;
  std::vector<Headroom> headrooms_; // by link, if any switch shares a buffer
  std::vector<DeficitRoundRobin> schedulers_;
  std::vector<Red> reds_;
  std::vector<std::uint32_t> route_;       // ports of all routes, each with kNone at its end
  std::vector<std::uint32_t> route_marks_; // which counter of marks is theirs
  std::vector<MarkCounter> marks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> marks_of_; // a counter's place by port and host
  std::vector<MltcpJob> mltcp_jobs_;                                          // before all that are members of them
  std::vector<QueuePair> pairs_;
  TcpStack tcp_{*this};
  std::vector<HostCounters> hosts_;
  std::vector<Picos> cnp_at_;                                               // by notification point
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cnp_of_; // their places, where pairs share them
  std::vector<SelectiveRepeat> repeats_;
  std::vector<Bytes> sacks_; // by NACK's place in the pool: the packet that it is about
  std::int64_t hops_ = 0;
};

} // namespace packets
