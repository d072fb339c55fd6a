// SPDX-License-Identifier: Apache-2.0
// Cumulative counters in /proc: the machine's CPU time, and a network namespace's TCP.
#pragma once

#include "native/fd.hpp"

#include <cstdint>
#include <string>

namespace sampler {

// A file of /proc that stays open and is read repeatedly.
class ProcFile {
public:
  explicit ProcFile(std::string path);

  std::string read() const;

private:
  std::string path_;
  native::Fd fd_;
};

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

// Returns a counter in the text of /proc/net/snmp or /proc/net/netstat, such as `OutSegs` of `Tcp`. Throws
// native::Failure if it is missing.
std::uint64_t parse_counter(const std::string &text, const std::string &group, const std::string &name);

} // namespace sampler
