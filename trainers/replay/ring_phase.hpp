// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"
#include "trainers/replay/profile.hpp"

#include <cstdint>
#include <optional>

namespace replay {

// When one worker may send what, in one communication phase; no sockets, no clock.
//
// A ring all-reduce among N workers is 2(N-1) steps (Patarasuk and Yuan, JPDC 2009), and step k sends what step k-1
// received. NCCL pipelines the steps in slices; in the limit of small slices a worker may have sent one step's bytes
// plus what it has received. Each flow is a ring of its own, like an NCCL channel, over an even share of the bytes.
//
// Beside that, bytes appear at the profile's own demand, bytes / alone_ms from the phase's start, as gradients appear
// while backpropagation goes. What lags is not held back again: gradients pile up.
class RingPhase {
public:
  // How often the demand is looked at. Twice as often costs 60 % more CPU, and in the lab at 1:100 it changed
  // neither marks nor iteration times.
  static constexpr native::Nanos kTickNs = 500'000;

  RingPhase(const Phase &phase, unsigned workers, unsigned flows);

  // The flow's part of the phase's bytes.
  std::uint64_t share(unsigned flow) const { return part(bytes_, flow); }

  // How many bytes the flow may send now, `elapsed_ns` after the phase's start, having sent and received that much.
  std::uint64_t sendable(unsigned flow, native::Nanos elapsed_ns, std::uint64_t sent, std::uint64_t received) const;

  // When, after the phase's start, demand will next have grown enough to look; nothing once all of it is there.
  std::optional<native::Nanos> next_tick(native::Nanos elapsed_ns) const;

  // Bytes of a flow's demand in a time.
  std::uint64_t flow_demand(native::Nanos time_ns) const;

  // How many received bytes are worth a wake-up. Below half a step's bytes, or workers that each wait for the last
  // few of them would wait for ever.
  std::uint64_t receive_quantum(unsigned flow, std::uint64_t received) const;

private:
  std::uint64_t part(std::uint64_t total, unsigned flow) const { return total / flows_ + (flow < total % flows_); }
  std::uint64_t step(unsigned flow) const { return (share(flow) + steps_ - 1) / steps_; }
  std::uint64_t available(native::Nanos elapsed_ns) const;

  std::uint64_t bytes_;
  native::Nanos alone_ns_;
  unsigned steps_;
  unsigned flows_;
};

} // namespace replay
