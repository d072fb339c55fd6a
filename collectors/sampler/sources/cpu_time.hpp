// SPDX-License-Identifier: Apache-2.0
// The machine's CPU time, and its processing of received packets, from /proc.
#pragma once

#include <cstdint>
#include <string>

namespace sampler {

// CPU time of all CPUs together, in clock ticks (sysconf(_SC_CLK_TCK) per second and CPU).
struct CpuTicks {
  std::uint64_t busy = 0; // user, nice, system, irq, softirq
  std::uint64_t idle = 0; // idle, iowait
  std::uint64_t steal = 0;
  std::uint64_t softirq = 0; // part of busy
};

// Counts of all CPUs together: packets processed from the backlog, packets dropped because it was full, and times that
// processing stopped with work left.
struct Softnet {
  std::uint64_t processed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t squeezed = 0;
};

// Parse the text of /proc/stat and /proc/net/softnet_stat. Both throw native::Failure if the text has another form.
CpuTicks parse_stat(const std::string &text);
Softnet parse_softnet(const std::string &text);

} // namespace sampler
