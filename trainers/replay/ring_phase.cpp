// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/ring_phase.hpp"

#include <algorithm>

namespace replay {

RingPhase::RingPhase(const Phase &phase, unsigned workers, unsigned flows)
    : bytes_(phase.bytes), alone_ns_(phase.alone_ns), steps_(2 * (workers - 1)), flows_(flows) {}

std::uint64_t RingPhase::available(native::Nanos elapsed_ns) const {
  if (elapsed_ns >= alone_ns_)
    return bytes_;
  const double done = static_cast<double>(std::max<native::Nanos>(elapsed_ns, 0)) / static_cast<double>(alone_ns_);
  return static_cast<std::uint64_t>(static_cast<double>(bytes_) * done);
}

std::uint64_t RingPhase::sendable(unsigned flow, native::Nanos elapsed_ns, std::uint64_t sent,
                                  std::uint64_t received) const {
  const std::uint64_t limit = std::min(part(available(elapsed_ns), flow), step(flow) + received);
  return limit > sent ? limit - sent : 0;
}

std::optional<native::Nanos> RingPhase::next_tick(native::Nanos elapsed_ns) const {
  if (elapsed_ns >= alone_ns_)
    return std::nullopt;
  return std::min(alone_ns_, (std::max<native::Nanos>(elapsed_ns, 0) / kTickNs + 1) * kTickNs);
}

std::uint64_t RingPhase::flow_demand(native::Nanos time_ns) const { return available(time_ns) / flows_; }

std::uint64_t RingPhase::receive_quantum(unsigned flow, std::uint64_t received) const {
  constexpr native::Nanos kWorthWakingNs = 1'000'000;
  const std::uint64_t left = received < share(flow) ? share(flow) - received : share(flow);
  return std::max<std::uint64_t>(std::min({flow_demand(kWorthWakingNs), step(flow) / 2, left}), 1);
}

} // namespace replay
