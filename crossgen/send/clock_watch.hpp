// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <cstdlib>
#include <optional>
#include <utility>

namespace crossgen {

// Detects steps of UTC against the monotonic clock, which times all events.
class ClockWatch {
public:
  explicit ClockWatch(native::Nanos offset_ns) : offset_ns_(offset_ns) {}

  static native::Nanos offset_now_ns() { return native::utc_ns() - native::monotonic_ns(); }

  // Returns by how much UTC has stepped since the last call, at most some seconds ago; none if it was only slewed.
  std::optional<native::Nanos> look(native::Nanos offset_ns) {
    const native::Nanos step_ns = offset_ns - std::exchange(offset_ns_, offset_ns);
    return std::abs(step_ns) > kStepNs ? std::optional(step_ns) : std::nullopt;
  }

private:
  static constexpr native::Nanos kStepNs = 5'000'000; // the kernel slews by 0.5 ms a second at most

  native::Nanos offset_ns_;
};

} // namespace crossgen
