// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"
#include "trainers/replay/playback/job.hpp"

#include <cstdint>
#include <optional>

namespace replay {

// Decides when a worker may send which bytes of a transfer over one of its connections, without sockets or clocks.
//
// Bytes appear from the phase's start at the profile's demand, bytes / alone_ms, as gradients appear during
// backpropagation. Bytes that lag are sent without further pacing, because gradients accumulate.
//
// In addition, a transfer with a lead may exceed the bytes that the worker has received in the phase by at most its
// lead. A ring all-reduce among N workers is 2(N-1) steps (Patarasuk and Yuan, JPDC 2009), and step k sends what step
// k-1 received. NCCL pipelines the steps in slices; in the limit of small slices a worker may have sent one step's
// bytes plus what it has received: its lead is one step. In a pipeline the lead is 0. Each connection is paced
// separately, like an NCCL channel, with an equal share of the bytes.
class Pace {
public:
  // Interval at which demand is evaluated. Half of it costs 60 % more CPU, and in the lab at 1:100 it changed neither
  // marks nor iteration times.
  static constexpr native::Nanos kTickNs = 500'000;

  Pace(const Transfer &transfer, native::Nanos alone_ns, unsigned connections, unsigned connection);

  // Returns the connection's part of the transfer's bytes.
  std::uint64_t share() const { return part(bytes_); }

  // Returns how many bytes may be sent now, `elapsed_ns` after the phase's start, after `sent` and `received` bytes.
  std::uint64_t sendable(native::Nanos elapsed_ns, std::uint64_t sent, std::uint64_t received) const;

  // Returns when, after the phase's start, to evaluate demand next; none once all bytes have appeared.
  std::optional<native::Nanos> next_tick(native::Nanos elapsed_ns) const;

  // Returns the connection's bytes that appear in a time.
  std::uint64_t demand(native::Nanos time_ns) const { return available(time_ns) / connections_; }

  // Returns how many received bytes are worth a wake-up. It is below half a lead, because otherwise workers that wait
  // for each other's last bytes would wait forever.
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
