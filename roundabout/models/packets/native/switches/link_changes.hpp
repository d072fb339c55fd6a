// SPDX-License-Identifier: Apache-2.0
// Changes of links during a simulation: failures, recoveries, losses, and other rates.
#pragma once

#include "roundabout/models/packets/native/switches/forwarding.hpp"

#include <span>
#include <vector>

namespace packets {

class LinkChanges {
public:
  LinkChanges(EventQueue &events, Fabric &fabric, SwitchMmu &mmu, Forwarding &forwarding)
      : events_(events), fabric_(fabric), mmu_(mmu), forwarding_(forwarding) {}

  void add(std::uint32_t port, const link_plan &plan);        // for both directions of a link, of which `port` is one
  void avoid(std::span<const std::uint32_t> ports, Picos at); // by switches that choose next hops
  void begin();                                               // schedules all changes
  void handle(const LinkEvent &event, Picos now);
  void handle(const AvoidEvent &event, Picos now);

private:
  struct Change {
    std::uint32_t port;
    link_plan plan;
  };

  struct Avoidance {
    Picos at;
    std::vector<std::uint32_t> ports;
  };

  void fail(std::uint32_t port, Picos now);

  EventQueue &events_;
  Fabric &fabric_;
  SwitchMmu &mmu_;
  Forwarding &forwarding_;
  std::vector<Change> changes_;
  std::vector<Avoidance> avoidances_;
};

} // namespace packets
