// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/fabric.hpp"

#include <cmath>

namespace packets {
namespace {

Picos time_of(double bytes, double bytes_per_s) {
  return static_cast<Picos>(std::ceil(bytes * kPsPerSecond / bytes_per_s));
}

// Returns a byte's time in units of 2^-20 ps, rounded up.
std::uint64_t ps_q20_of(double bytes_per_s) {
  return static_cast<std::uint64_t>(std::ceil(kPsPerSecond * (1 << 20) / bytes_per_s));
}

} // namespace

Fabric::Fabric(const nic_plan &nic, std::span<const port_plan> plans)
    : ports(plans.size()), around_bytes_(nic.around_bytes) {
  for (std::size_t i = 0; i < plans.size(); i++) {
    const port_plan &plan = plans[i];
    Port &port = ports[i];
    port.is_host = plan.host >= 0;
    port.payload_ps_q20 = ps_q20_of(plan.payload_bytes_per_s);
    port.line_ps_q20 = ps_q20_of(plan.line_bytes_per_s);
    port.control_ps = time_of(static_cast<double>(nic.control_bytes + nic.around_bytes), plan.line_bytes_per_s);
    port.delay = plan.delay_ps;
    port.queue_bytes = plan.queue_bytes;
    port.kmin_bytes = plan.kmin_bytes;
    port.kmax_bytes = plan.kmax_bytes;
    port.pmax = plan.pmax;
    port.marks_on_arrival = plan.marks_on_arrival != 0;
    port.xoff_bytes = plan.xoff_bytes;
    port.xon_bytes = plan.xon_bytes;
    port.buffer_bytes = plan.buffer_bytes;
    port.loss = plan.loss;
    port.drops_early = plan.loss > 0 && !port.is_host;
  }
}

std::uint32_t Fabric::add_route(std::span<const std::uint32_t> way, std::uint32_t host) {
  const auto first = static_cast<std::uint32_t>(route_.size());
  for (const std::uint32_t port : way) {
    const auto [found, is_new] =
        counter_of_.try_emplace({port, host}, static_cast<std::uint32_t>(mark_counters_.size()));
    if (is_new)
      mark_counters_.push_back({port, host, 0});
    route_.push_back(port);
    route_marks_.push_back(found->second);
  }
  route_.push_back(kNone);
  route_marks_.push_back(kNone);
  return first;
}

std::uint32_t Fabric::last_port(std::uint32_t hop) const {
  while (route_[hop + 1] != kNone)
    hop++;
  return route_[hop];
}

Picos Fabric::empty_round_trip(std::uint32_t out, std::uint32_t back) const {
  Picos sum = 0;
  for (const std::uint32_t first : {out, back})
    for (std::uint32_t hop = first; hop != kNone && route_[hop] != kNone; hop++)
      sum += ports[route_[hop]].control_ps + ports[route_[hop]].delay;
  return sum;
}

} // namespace packets
