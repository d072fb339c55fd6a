// SPDX-License-Identifier: Apache-2.0
// Forwarding of packets: into the queues of ports, onto links, and to the next port or to a host.
#pragma once

#include "roundabout/models/packets/native/event_queue.hpp"
#include "roundabout/models/packets/native/fabric.hpp"
#include "roundabout/models/packets/native/switches/ecn.hpp"
#include "roundabout/models/packets/native/switches/scheduler.hpp"
#include "roundabout/models/packets/native/switches/switch_mmu.hpp"

#include <span>
#include <vector>

namespace packets {

class Hosts;

class Forwarding {
public:
  Forwarding(EventQueue &events, Random &random, Fabric &fabric, SwitchMmu &mmu, EcnMarker &ecn, Hosts &hosts)
      : events_(events), random_(random), fabric_(fabric), mmu_(mmu), ecn_(ecn), hosts_(hosts) {}

  // Serves the lowest queues of a port by deficit round robin.
  void weigh_queues(std::uint32_t port, std::span<const Bytes> quanta);

  void arrive(std::uint32_t link, Picos now); // The oldest packet on a port's link is at its far end.
  void on_transmission(std::uint32_t port, Picos now);
  void handle(const PfcEvent &event, Picos now);

  void enqueue(std::uint32_t port, std::uint32_t packet, Picos now);
  void wake(std::uint32_t port, Picos now); // Something waits; it leaves once the port is free.
  void transmit(std::uint32_t port, std::uint32_t packet, Picos now); // over the port's link, which is free

  void drop_all(std::uint32_t port, Picos now); // what waits at a port and what is on its link

  std::int64_t hops() const { return hops_; } // transmissions of all ports

  PacketPool packets; // in flight

private:
  bool drops_early(Port &port, Packet &packet, Picos now);
  void lose(Port &port, std::uint32_t packet);
  void reject(std::uint32_t port, std::uint32_t packet, Picos now); // for want of room
  void transmit_next(std::uint32_t port, Picos now);                // if a queue may send; the port is free
  int choose(Port &port, std::uint8_t may);
  std::uint32_t dequeue(Port &port, int priority, Picos now);
  void on_empty_queue(Port &port, const Packet &packet, Picos now);

  EventQueue &events_;
  Random &random_;
  Fabric &fabric_;
  SwitchMmu &mmu_;
  EcnMarker &ecn_;
  Hosts &hosts_;
  std::vector<DeficitRoundRobin> schedulers_;
  std::int64_t hops_ = 0;
};

} // namespace packets
