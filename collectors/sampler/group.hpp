// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sampler {

// The unit and width of a counter. A counter of 32 bits wraps; a narrower one stops at its maximum.
struct Meaning {
  std::string unit;
  int width_bits = 64;
};

struct Counter {
  std::string name; // the source's own
  Meaning meaning;
};

// Counters of one device that are read together. `values` has one value for each counter, none if it has vanished.
class Group {
public:
  Group(std::string device_name, std::string source_name)
      : device(std::move(device_name)), source(std::move(source_name)) {}
  virtual ~Group() = default;

  // Reads the present values of all counters into `values`.
  virtual void read() = 0;

  const std::string device;
  const std::string source;
  std::vector<Counter> counters;
  std::vector<std::optional<std::uint64_t>> values;
};

} // namespace sampler
