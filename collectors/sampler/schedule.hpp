// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <cstdint>

namespace sampler {

// Deadlines at start, start + period, start + 2 periods and so on; a late sample does not move later deadlines.
class Schedule {
public:
  Schedule(native::Nanos start_ns, native::Nanos period_ns) : deadline_ns_(start_ns), period_ns_(period_ns) {}

  native::Nanos deadline_ns() const { return deadline_ns_; }
  std::uint64_t missed() const { return missed_; }

  // Returns true if the deadline has passed. It then moves to the next future deadline, and counts those it skips as
  // missed.
  bool due(native::Nanos now_ns) {
    if (now_ns < deadline_ns_)
      return false;
    const native::Nanos passed_over = (now_ns - deadline_ns_) / period_ns_;
    missed_ += static_cast<std::uint64_t>(passed_over);
    deadline_ns_ += (passed_over + 1) * period_ns_;
    return true;
  }

private:
  native::Nanos deadline_ns_;
  native::Nanos period_ns_;
  std::uint64_t missed_ = 0;
};

} // namespace sampler
