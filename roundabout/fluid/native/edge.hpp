// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "roundabout/fluid/native/job.hpp"

namespace fluid {

// One direction of a link, and the streams that it has now.
//
// It couples them where they could ask for more, together, than it carries. What they could is summed up in whole
// units: sums of fractions would drift as streams come and go.
struct Edge {
  explicit Edge(double bytes_per_ms) : capacity(bytes_per_ms), limit(bytes_per_ms) {}

  double capacity;
  double limit; // of which it carries so much now, where it is less while congested
  std::int64_t units = 0, limit_units = 0;
  bool tight = false, dirty = false;
  std::uint64_t seen = 0;
  int local = -1;
  std::vector<Hop *> hops;
  std::vector<double> carried; // bytes in each sample's time
};

} // namespace fluid
