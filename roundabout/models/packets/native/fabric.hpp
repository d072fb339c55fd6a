// SPDX-License-Identifier: Apache-2.0
// The fabric: ports, the links that they feed, and routes over them.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace packets {

class Fabric {
public:
  Fabric(const nic_plan &nic, std::span<const port_plan> plans);

  // A host's packets get a counter of marks at each port of their route. Returns the route's first hop.
  std::uint32_t add_route(std::span<const std::uint32_t> ports, std::uint32_t host);
  std::uint32_t port_at(std::uint32_t hop) const { return route_[hop]; } // kNone at a route's end
  std::uint32_t last_port(std::uint32_t first_hop) const;
  Picos empty_round_trip(std::uint32_t out, std::uint32_t back) const; // of a control frame

  // Data takes its payload's time at the payload rate, but at least its whole frame's time at the line rate, which is
  // longer for short packets.
  Picos transmission_time(const Port &port, const Packet &packet) const {
    if (packet.kind != Kind::kData)
      return port.control_ps;
    const auto frame = static_cast<std::uint64_t>(packet.frame + around_bytes_);
    const std::uint64_t ps_q20 = std::max(packet.payload * port.payload_ps_q20, frame * port.line_ps_q20);
    return static_cast<Picos>((ps_q20 + ((1 << 20) - 1)) >> 20);
  }

  void mark(Port &port, Packet &packet) {
    packet.marked = true;
    port.counters[packet.priority].marks++;
    mark_counters_[route_marks_[packet.hop]].marks++;
  }

  struct MarkCounter {
    std::uint32_t port, host;
    std::int64_t marks;
  };
  const std::vector<MarkCounter> &mark_counters() const { return mark_counters_; }

  std::vector<Port> ports;

private:
  Bytes around_bytes_;
  std::vector<std::uint32_t> route_;       // ports of all routes, each with kNone at its end
  std::vector<std::uint32_t> route_marks_; // counters of marks of these hops
  std::vector<MarkCounter> mark_counters_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counter_of_; // by port and host
};

} // namespace packets
