// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/pacing.hpp"

#include <algorithm>

namespace replay {

Pace::Pace(const Transfer &transfer, native::Nanos alone_ns, unsigned connections, unsigned connection)
    : bytes_(transfer.bytes), alone_ns_(alone_ns), connections_(connections), connection_(connection) {
  if (transfer.lead_bytes)
    lead_ = (*transfer.lead_bytes + connections - 1) / connections;
}

std::uint64_t Pace::available(native::Nanos elapsed_ns) const {
  if (elapsed_ns >= alone_ns_)
    return bytes_;
  const double done = static_cast<double>(std::max<native::Nanos>(elapsed_ns, 0)) / static_cast<double>(alone_ns_);
  return static_cast<std::uint64_t>(static_cast<double>(bytes_) * done);
}

std::uint64_t Pace::sendable(native::Nanos elapsed_ns, std::uint64_t sent, std::uint64_t received) const {
  std::uint64_t limit = part(available(elapsed_ns));
  if (lead_)
    limit = std::min(limit, *lead_ + received);
  return limit > sent ? limit - sent : 0;
}

std::optional<native::Nanos> Pace::next_tick(native::Nanos elapsed_ns) const {
  if (elapsed_ns >= alone_ns_)
    return std::nullopt;
  return std::min(alone_ns_, (std::max<native::Nanos>(elapsed_ns, 0) / kTickNs + 1) * kTickNs);
}

std::uint64_t Pace::receive_quantum(std::uint64_t received) const {
  constexpr native::Nanos kWorthWakingNs = 1'000'000;
  std::uint64_t quantum = std::min(demand(kWorthWakingNs), received < share() ? share() - received : share());
  if (lead_ && *lead_ > 0)
    quantum = std::min(quantum, *lead_ / 2);
  return std::max<std::uint64_t>(quantum, 1);
}

} // namespace replay
