// SPDX-License-Identifier: Apache-2.0
// The sender of flows with a window (Swift, NSCC). Each packet is acknowledged by itself, with the instant at which it
// was sent and its mark. A packet counts as lost once enough later ones have arrived, or after a timeout, and is then
// sent again by itself.
#pragma once

#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/switches/forwarding.hpp"
#include "roundabout/models/packets/native/window/window_flow.hpp"

#include <span>
#include <vector>

namespace packets {

// Fields of a data packet and its ACK beside those of Packet.
struct Stamp {
  Bytes seq; // of the data packet
  Picos sent_at;
  std::uint16_t entropy;
};

class WindowSender {
public:
  WindowSender(EventQueue &events, const nic_plan &nic, Fabric &fabric, Forwarding &forwarding, Hosts &hosts)
      : events_(events), nic_(nic), fabric_(fabric), forwarding_(forwarding), hosts_(hosts) {}
  WindowSender(const WindowSender &) = delete;
  ~WindowSender();

  std::uint32_t add(const QueuePair &pair, const window_plan &plan); // Returns the flow's number.
  const WindowFlow &operator[](std::uint32_t flow) const { return flows_[flow]; }
  void join(std::uint32_t flow, mltcp_job *job) { window_join(flows_[flow].control, job); }
  void leave(std::uint32_t flow) { window_leave(flows_[flow].control); }
  void begin_message(const QueuePair &pair, Picos now);
  void begin_connection(const QueuePair &pair, Picos now) { window_begin(flows_[pair.window].control, now); }

  void schedule(std::uint32_t pair, Picos now); // the sender's next timer
  void on_timer(std::uint32_t pair, Picos now);
  std::uint32_t send_next(std::uint32_t pair, Picos now); // at its turn; kNone if it may not send
  void take_ack(const Packet &ack, std::uint32_t which, Picos now);
  void take_nack(std::uint32_t pair, std::uint32_t which, Picos now); // about a trimmed packet

  // The receiver's part: it answers the packet that was at `which` in the pool.
  void take_data(const Packet &packet, std::uint32_t which, Picos now);
  void take_trimmed(std::uint32_t pair, std::uint32_t which, Picos now);

private:
  window_path path_of(const QueuePair &pair) const;
  Picos may_send_at(QueuePair &pair, const WindowFlow &flow, Picos now) const; // kNever: not before an ACK
  Picos timeout_at(const WindowFlow &flow) const;
  std::uint32_t send(std::uint32_t pair, Picos now);
  std::size_t next_packet(QueuePair &pair, WindowFlow &flow); // its place in `sent`
  Bytes payload_at(const QueuePair &pair, Bytes seq) const { return std::min(nic_.payload_bytes, pair.end - seq); }
  // Returns the place in `sent` of the packet at `seq` if it was not acknowledged before, or else the end.
  std::size_t find_sent(const QueuePair &pair, const WindowFlow &flow, Bytes seq) const;
  Bytes acknowledge(const QueuePair &pair, WindowFlow &flow, Bytes seq); // Returns its bytes if they are new.
  void measure(WindowFlow &flow, Picos rtt);
  void find_losses(QueuePair &pair, WindowFlow &flow, Picos now);
  void lose(const QueuePair &pair, WindowFlow &flow, std::size_t place, PathFeedback feedback, Picos now);
  void pop_acked(QueuePair &pair, WindowFlow &flow, Bytes expected);
  void on_timeout(QueuePair &pair, WindowFlow &flow, Picos now);
  void reply(std::uint32_t pair, Kind kind, bool is_marked, Stamp received, Picos now);
  void stamp(std::uint32_t which, const Stamp &stamp);

  EventQueue &events_;
  const nic_plan &nic_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<WindowFlow> flows_;
  std::vector<Stamp> stamps_; // by a packet's place in the pool
};

} // namespace packets
