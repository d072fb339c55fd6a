// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/tcp_counters.hpp"

#include "native/errors.hpp"

#include <sstream>

namespace sampler {

// A group is a line of names and a line of values below it.
std::uint64_t parse_counter(const std::string &text, const std::string &group, const std::string &name) {
  std::istringstream lines(text);
  for (std::string names, values; std::getline(lines, names) && std::getline(lines, values);) {
    if (!names.starts_with(group + ":"))
      continue;
    std::istringstream name_in(names), value_in(values);
    for (std::string key, value; name_in >> key && value_in >> value;)
      if (key == name)
        return std::stoull(value);
  }
  throw native::Failure("/proc/net: the kernel has no counter " + group + " " + name);
}

} // namespace sampler
