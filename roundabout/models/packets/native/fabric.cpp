// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/fabric.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace packets {
namespace {

Picos time_of(double bytes, double bytes_per_s) {
  return static_cast<Picos>(std::ceil(bytes * kPsPerSecond / bytes_per_s));
}

// Returns a byte's time in units of 2^-20 ps, rounded up.
std::uint64_t ps_q20_of(double bytes_per_s) {
  return static_cast<std::uint64_t>(std::ceil(kPsPerSecond * (1 << 20) / bytes_per_s));
}

// Returns one of `count` equal choices of a switch, by a hash of an entropy (the finalizer of MurmurHash3, Appleby).
std::uint32_t hash_choice(std::uint32_t entropy, std::uint32_t at_switch, std::size_t count) {
  std::uint32_t hash = entropy ^ (at_switch + 1) * 0x9e3779b9;
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
  hash ^= hash >> 16;
  return static_cast<std::uint32_t>((hash * std::uint64_t{count}) >> 32);
}

} // namespace

Fabric::Fabric(const nic_plan &nic, std::span<const port_plan> plans, Random &random)
    : ports(plans.size()), random_(random), around_bytes_(nic.around_bytes), control_bytes_(nic.control_bytes),
      next_hops_(plans) {
  for (std::size_t i = 0; i < plans.size(); i++) {
    const port_plan &plan = plans[i];
    Port &port = ports[i];
    port.is_host = plan.host >= 0;
    set_rates(port, plan.payload_bytes_per_s, plan.line_bytes_per_s);
    port.delay = plan.delay_ps;
    port.queue_bytes = plan.queue_bytes;
    port.kmin_bytes = plan.kmin_bytes;
    port.kmax_bytes = plan.kmax_bytes;
    port.pmax = plan.pmax;
    port.marks_on_arrival = plan.marks_on_arrival != 0;
    port.xoff_bytes = plan.xoff_bytes;
    port.xon_bytes = plan.xon_bytes;
    port.buffer_bytes = plan.buffer_bytes;
    port.trims = plan.trims != 0;
    port.loss = plan.loss;
    port.drops_early = plan.loss > 0 && !port.is_host;
    packet_ps_ = std::min(packet_ps_, time_of(static_cast<double>(nic.payload_bytes), plan.payload_bytes_per_s));
  }
}

void Fabric::set_routing(const routing_plan &plan) {
  if (plan.policy != FIXED_ROUTES)
    choice_.emplace(plan, random_);
  is_adaptive_ = plan.policy == ADAPTIVE;
}

std::pair<std::uint32_t, std::uint32_t> Fabric::add_routes(std::span<const std::uint32_t> out,
                                                           std::span<const std::uint32_t> back, std::uint32_t from_host,
                                                           std::uint32_t to_host) {
  if (out.empty())
    return {kNone, kNone};
  if (has_fixed_routes()) {
    const std::uint32_t there = add_route(out, from_host);
    return {there, add_route(back, to_host)};
  }
  const std::uint32_t there = add_path_set(out, back, from_host);
  return {there, add_path_set(back, out, to_host)};
}

void Fabric::set_rates(Port &port, double payload_bytes_per_s, double line_bytes_per_s) const {
  port.payload_ps_q20 = ps_q20_of(payload_bytes_per_s);
  port.line_ps_q20 = ps_q20_of(line_bytes_per_s);
  port.control_ps = time_of(static_cast<double>(control_bytes_ + around_bytes_), line_bytes_per_s);
}

std::uint32_t Fabric::add_route(std::span<const std::uint32_t> way, std::uint32_t host) {
  const auto first = static_cast<std::uint32_t>(route_.size());
  for (const std::uint32_t port : way) {
    route_.push_back(port);
    route_marks_.push_back(mark_counter(port, host));
  }
  route_.push_back(kNone);
  route_marks_.push_back(kNone);
  return first;
}

std::uint32_t Fabric::copy_route(std::uint32_t route) {
  if (route == kNone || !is_chosen(route))
    return route;
  const PathSet &like = path_sets_[route & ~kChosen];
  return number_path_set({.first_plane = like.first_plane, .planes = like.planes});
}

std::uint32_t Fabric::number_path_set(PathSet paths) {
  choice_->begin(paths);
  path_sets_.push_back(paths);
  return static_cast<std::uint32_t>(path_sets_.size() - 1) | kChosen;
}

// A plane joins NICs of the same number. The two directions of a link are neighbors.
std::uint32_t Fabric::add_path_set(std::span<const std::uint32_t> from, std::span<const std::uint32_t> to,
                                   std::uint32_t from_host) {
  PathSet paths;
  paths.first_plane = static_cast<std::uint32_t>(planes_.size());
  paths.planes = static_cast<std::uint32_t>(from.size());
  for (std::size_t i = 0; i < from.size(); i++) {
    const std::uint32_t last = to[i % to.size()] ^ 1, to_switch = next_hops_.from(last);
    planes_.push_back({from[i], last, to_switch, next_hops_.add_destination(to_switch), from_host});
  }
  return number_path_set(paths);
}

std::uint32_t Fabric::mark_counter(std::uint32_t port, std::uint32_t host) {
  const auto [found, is_new] = counter_of_.try_emplace({port, host}, static_cast<std::uint32_t>(mark_counters_.size()));
  if (is_new)
    mark_counters_.push_back({port, host, 0});
  return found->second;
}

std::uint32_t Fabric::last_port(std::uint32_t route) const {
  if (is_chosen(route))
    return planes_[path_sets_[route & ~kChosen].first_plane].last_port;
  while (route_[route + 1] != kNone)
    route++;
  return route_[route];
}

std::vector<std::uint32_t> Fabric::any_path(std::uint32_t route) const {
  std::vector<std::uint32_t> found;
  if (!is_chosen(route)) {
    for (; route_[route] != kNone; route++)
      found.push_back(route_[route]);
    return found;
  }
  const Plane &plane = planes_[path_sets_[route & ~kChosen].first_plane];
  found.push_back(plane.first_port);
  for (std::uint32_t at = next_hops_.to(plane.first_port); at != plane.to_switch; at = next_hops_.to(found.back()))
    found.push_back(next_hops_.group(plane.destination, at)[0]);
  found.push_back(plane.last_port);
  return found;
}

Picos Fabric::empty_round_trip(std::uint32_t out, std::uint32_t back) const {
  Picos sum = 0;
  for (const std::uint32_t route : {out, back})
    if (route != kNone)
      for (const std::uint32_t port : any_path(route))
        sum += ports[port].control_ps + ports[port].delay;
  return sum;
}

std::uint32_t Fabric::begin_chosen(Packet &packet, std::uint32_t route, Picos now) {
  const std::uint32_t plane = next_plane(route);
  PathSet &paths = path_sets_[route & ~kChosen];
  choice_->choose(paths, now);
  packet.hop = plane | kChosen;
  packet.entropy = paths.entropy;
  return planes_[plane].first_port;
}

std::uint32_t Fabric::choose_port(Packet &packet, std::uint32_t link, Picos now) {
  const std::uint32_t at_switch = next_hops_.to(link);
  if (at_switch == kNone)
    return kNone;
  packet.link = link;
  const Plane &plane = planes_[packet.hop & ~kChosen];
  if (at_switch == plane.to_switch)
    return plane.last_port;
  const auto group = next_hops_.group(plane.destination, at_switch);
  if (group.size() == 1)
    return group[0];
  return is_adaptive_ ? least_loaded(group, packet.priority, now)
                      : group[hash_choice(packet.entropy, at_switch, group.size())];
}

// Returns a port with the least load, by the time until it has sent what waits with this priority. Loads below two,
// four, eight and so on full packets count as equal, and of equal ports one is drawn. Switches compare loads in few
// bands, too. By exact loads, flows of one rate would keep the ports that they found free first.
std::uint32_t Fabric::least_loaded(std::span<const std::uint32_t> group, int priority, Picos now) {
  std::uint32_t found = kNone;
  int least = std::numeric_limits<int>::max(), equal = 0;
  for (const std::uint32_t each : group) {
    const Port &port = ports[each];
    const auto waiting = static_cast<std::uint64_t>(port.queues[priority].bytes) * port.line_ps_q20 >> 20;
    const Picos load = std::max<Picos>(port.free_at - now, 0) + static_cast<Picos>(waiting);
    const auto band = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(load / (2 * packet_ps_))));
    if (band < least) {
      least = band;
      equal = 0;
    }
    if (band == least && (++equal == 1 || random_.uniform() * equal < 1))
      found = each;
  }
  return found;
}

} // namespace packets
