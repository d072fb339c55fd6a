// SPDX-License-Identifier: Apache-2.0
// The fabric: ports, the links that they feed, and routes over them.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/paths/path_choice.hpp"
#include "roundabout/models/packets/native/switches/next_hops.hpp"
#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace packets {

class Fabric {
public:
  Fabric(const nic_plan &nic, std::span<const port_plan> plans, Random &random);

  void set_routing(const routing_plan &plan);
  bool has_fixed_routes() const { return !choice_; }
  bool may_reorder() const { return choice_.has_value(); } // packets of one queue pair

  // Adds the routes there and back of a queue pair. `out` and `back` are ports as packets_add_pair has them.
  std::pair<std::uint32_t, std::uint32_t> add_routes(std::span<const std::uint32_t> out,
                                                     std::span<const std::uint32_t> back, std::uint32_t from_host,
                                                     std::uint32_t to_host);
  std::uint32_t copy_route(std::uint32_t route);      // for another queue pair between the same hosts
  std::uint32_t nic_port(std::uint32_t route) const { // by which its next packet leaves
    return is_chosen(route) ? planes_[next_plane(route)].first_port : route_[route];
  }
  std::uint32_t last_port(std::uint32_t route) const;                           // of its first plane
  std::vector<std::uint32_t> any_path(std::uint32_t route) const;               // its ports
  Picos empty_round_trip(std::uint32_t out, std::uint32_t back) const;          // of a control frame
  void avoid(std::span<const std::uint32_t> links) { next_hops_.avoid(links); } // where packets are bound to no route
  Bytes control_bytes() const { return control_bytes_; }
  void set_rates(Port &port, double payload_bytes_per_s, double line_bytes_per_s) const;

  // Puts a packet that is sent now at the begin of a route. Returns the NIC's port.
  std::uint32_t begin(Packet &packet, std::uint32_t route, Picos now) {
    if (is_chosen(route))
      return begin_chosen(packet, route, now);
    packet.hop = route;
    return route_[route];
  }
  // Returns the port by which a packet goes on that has arrived over a link, or kNone at its receiver.
  std::uint32_t next_port(Packet &packet, std::uint32_t link, Picos now) {
    return is_chosen(packet.hop) ? choose_port(packet, link, now) : route_[++packet.hop];
  }
  // Returns the link by which a packet came to the switch that has it.
  std::uint32_t link_before(const Packet &packet) const {
    return is_chosen(packet.hop) ? packet.link : route_[packet.hop - 1];
  }

  // Gives the fate of a packet that was sent over a route to the choice of its next paths.
  void learn(std::uint32_t route, std::uint16_t entropy, PathFeedback feedback, Picos now) {
    if (is_chosen(route))
      choice_->learn(path_sets_[route & ~kChosen], entropy, feedback, now);
  }

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
    mark_counters_[is_chosen(packet.hop) ? mark_counter(port, packet) : route_marks_[packet.hop]].marks++;
  }

  struct MarkCounter {
    std::uint32_t port, host;
    std::int64_t marks;
  };
  const std::vector<MarkCounter> &mark_counters() const { return mark_counters_; }

  std::vector<Port> ports;

private:
  // The ports at both ends of the paths between two hosts by one NIC of each.
  struct Plane {
    std::uint32_t first_port, last_port;
    std::uint32_t to_switch, destination; // the receiver's switch, and its place in next hops
    std::uint32_t from_host;
  };

  // Places among routes' ports are below this bit. With it, a route is the number of a path set, and a packet's hop is
  // that of a plane.
  static constexpr std::uint32_t kChosen = 1U << 31;
  static bool is_chosen(std::uint32_t place) { return place & kChosen; }
  std::uint32_t next_plane(std::uint32_t route) const {
    const PathSet &paths = path_sets_[route & ~kChosen];
    return paths.first_plane + paths.turn;
  }

  // A host's packets get a counter of marks at each port of their route. Returns the route's first hop.
  std::uint32_t add_route(std::span<const std::uint32_t> ports, std::uint32_t host);
  std::uint32_t add_path_set(std::span<const std::uint32_t> from, std::span<const std::uint32_t> to,
                             std::uint32_t from_host);
  std::uint32_t number_path_set(PathSet paths);
  std::uint32_t begin_chosen(Packet &packet, std::uint32_t route, Picos now);
  std::uint32_t choose_port(Packet &packet, std::uint32_t link, Picos now);
  std::uint32_t least_loaded(std::span<const std::uint32_t> group, int priority, Picos now);
  std::uint32_t mark_counter(std::uint32_t port, std::uint32_t host);
  std::uint32_t mark_counter(const Port &port, const Packet &packet) {
    return mark_counter(static_cast<std::uint32_t>(&port - ports.data()), planes_[packet.hop & ~kChosen].from_host);
  }

  Random &random_;
  Bytes around_bytes_, control_bytes_;     // of a control frame
  std::vector<std::uint32_t> route_;       // ports of all routes, each with kNone at its end
  std::vector<std::uint32_t> route_marks_; // counters of marks of these hops
  std::vector<MarkCounter> mark_counters_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counter_of_; // by port and host

  NextHops next_hops_;
  std::optional<PathChoice> choice_; // none with fixed routes
  bool is_adaptive_ = false;
  Picos packet_ps_ = kNever; // of a full packet at the fastest port
  std::vector<PathSet> path_sets_;
  std::vector<Plane> planes_;
};

} // namespace packets
