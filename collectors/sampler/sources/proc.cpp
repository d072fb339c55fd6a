// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/proc.hpp"

#include "native/errors.hpp"

#include <fcntl.h>
#include <sstream>

namespace sampler {

ProcFile::ProcFile(std::string path) : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!fd_)
    throw native::system_failure("cannot read " + path_);
}

std::string ProcFile::read() const {
  std::string text;
  char chunk[16'384];
  ssize_t n = 0;
  while ((n = pread(fd_.get(), chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0)
    text.append(chunk, static_cast<std::size_t>(n));
  if (n < 0)
    throw native::system_failure("cannot read " + path_);
  return text;
}

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
