// SPDX-License-Identifier: Apache-2.0
// The sender of RoCE queue pairs: the NIC's rate limiter, DCQCN's reaction point, and retransmission.
#pragma once

#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/roce/selective_repeat.hpp"
#include "roundabout/models/packets/native/switches/forwarding.hpp"

#include <vector>

namespace packets {

class RoceSender {
public:
  RoceSender(EventQueue &events, Random &random, const nic_plan &nic, Fabric &fabric, Forwarding &forwarding,
             Hosts &hosts)
      : events_(events), random_(random), nic_(nic), fabric_(fabric), forwarding_(forwarding), hosts_(hosts) {}

  void attach(QueuePair &pair, const reaction_plan &plan); // to a queue pair between hosts
  void begin_message(QueuePair &pair);
  void begin_connection(QueuePair &pair); // without history

  void schedule(std::uint32_t pair, Picos now); // the sender's next timer
  void on_timer(std::uint32_t pair, Picos now);
  std::uint32_t send_next(std::uint32_t pair, Picos now); // at its turn; kNone if there is nothing to send

  void take_ack(const Packet &packet, Bytes sack, Picos now); // an ACK, or a NACK about the packet at `sack`
  void handle(const CnpEvent &event, Picos now);

private:
  std::uint32_t send(std::uint32_t pair, Picos now);
  Bytes next_seq(QueuePair &pair); // of the packet that it sends now
  void pace(QueuePair &pair, Bytes payload, Picos now);
  void limit(QueuePair &pair, std::uint64_t rate);
  void on_timeout(std::uint32_t pair, Picos now);

  EventQueue &events_;
  Random &random_;
  const nic_plan &nic_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<SelectiveRepeat> repeats_;
};

} // namespace packets
