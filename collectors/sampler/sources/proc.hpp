// SPDX-License-Identifier: Apache-2.0
// What /proc says of the machine's CPU time and of a network namespace's TCP. Cumulative counters.
#pragma once

#include "native/fd.hpp"

#include <cstdint>
#include <string>

namespace sampler {

// A file of /proc that is read again and again.
class ProcFile {
public:
  explicit ProcFile(std::string path);

  std::string read() const;

private:
  std::string path_;
  native::Fd fd_;
};

// Of all CPUs together, in clock ticks (sysconf(_SC_CLK_TCK) a second and CPU).
struct CpuTicks {
  std::uint64_t busy = 0; // user, nice, system, irq, softirq
  std::uint64_t idle = 0; // idle, iowait
  std::uint64_t steal = 0;
  std::uint64_t softirq = 0; // part of busy
};

// Of all CPUs together: packets that left the backlog, that found it full, and times that it was left with work to do.
struct Softnet {
  std::uint64_t processed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t squeezed = 0;
};

// The text of /proc/stat and /proc/net/softnet_stat. Throw native::Failure if it is not what it should be.
CpuTicks parse_stat(const std::string &text);
Softnet parse_softnet(const std::string &text);

// A counter of /proc/net/snmp or /proc/net/netstat, such as `Tcp` and `OutSegs`. Throws native::Failure if there is
// none.
std::uint64_t parse_counter(const std::string &text, const std::string &group, const std::string &name);

} // namespace sampler
