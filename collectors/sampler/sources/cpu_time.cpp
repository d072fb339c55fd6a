// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/cpu_time.hpp"

#include "native/errors.hpp"

#include <sstream>

namespace sampler {

CpuTicks parse_stat(const std::string &text) {
  std::istringstream in(text);
  std::string label;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(in >> label >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal) || label != "cpu")
    throw native::Failure("/proc/stat: expected a first line `cpu` with at least 8 numbers");
  return {user + nice + system + irq + softirq, idle + iowait, steal, softirq};
}

Softnet parse_softnet(const std::string &text) {
  Softnet sum;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::uint64_t processed = 0, dropped = 0, squeezed = 0;
    if (!(in >> std::hex >> processed >> dropped >> squeezed))
      throw native::Failure("/proc/net/softnet_stat: expected at least 3 numbers a line");
    sum.processed += processed;
    sum.dropped += dropped;
    sum.squeezed += squeezed;
  }
  return sum;
}

} // namespace sampler
