// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"
#include "trainers/replay/playback/job.hpp"

#include <cstdint>
#include <optional>

namespace replay {

// When a worker may send what of one transfer over one of its connections; no sockets, no clock.
//
// Bytes appear at the profile's own demand, bytes / alone_ms from the phase's start, as gradients appear while
// backpropagation goes. What lags is not held back again: gradients pile up.
//
// Beside that, a transfer with a lead may be no further ahead than that of what the worker has received in the phase. A
// ring all-reduce among N workers is 2(N-1) steps (Patarasuk and Yuan, JPDC 2009), and step k sends what step k-1
// received. NCCL pipelines the steps in slices; in the limit of small slices a worker may have sent one step's bytes
// plus what it has received: its lead is one step. In a pipeline it is nothing. Each connection is by itself, like an
// NCCL channel, over an even share of the bytes.
class Pace {
public:
  // How often the demand is looked at. Twice as often costs 60 % more CPU, and in the lab at 1:100 it changed
  // neither marks nor iteration times.
  static constexpr native::Nanos kTickNs = 500'000;

  Pace(const Transfer &transfer, native::Nanos alone_ns, unsigned connections, unsigned connection);

  // The connection's part of the transfer's bytes.
  std::uint64_t share() const { return part(bytes_); }

  // How many bytes may be sent now, `elapsed_ns` after the phase's start, having sent and received that much.
  std::uint64_t sendable(native::Nanos elapsed_ns, std::uint64_t sent, std::uint64_t received) const;

  // When, after the phase's start, demand will next have grown enough to look; nothing once all of it is there.
  std::optional<native::Nanos> next_tick(native::Nanos elapsed_ns) const;

  // Bytes of demand in a time.
  std::uint64_t demand(native::Nanos time_ns) const { return available(time_ns) / connections_; }

  // How many received bytes are worth a wake-up. Below half a lead, or workers that each wait for the last few of them
  // would wait for ever.
  std::uint64_t receive_quantum(std::uint64_t received) const;

private:
  std::uint64_t part(std::uint64_t total) const { return total / connections_ + (connection_ < total % connections_); }
  std::uint64_t available(native::Nanos elapsed_ns) const;

  std::uint64_t bytes_;
  std::optional<std::uint64_t> lead_;
  native::Nanos alone_ns_;
  unsigned connections_;
  unsigned connection_;
};

} // namespace replay
