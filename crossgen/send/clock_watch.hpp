// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <cstdlib>
#include <optional>
#include <utility>

namespace crossgen {

// Notices when UTC steps against the monotonic clock, by which everything is timed.
class ClockWatch {
public:
  explicit ClockWatch(native::Nanos offset_ns) : offset_ns_(offset_ns) {}

  static native::Nanos offset_now_ns() { return native::utc_ns() - native::monotonic_ns(); }

  // How far UTC has stepped since the last look, at most some seconds ago; nothing if it was only slewed.
  std::optional<native::Nanos> look(native::Nanos offset_ns) {
    const native::Nanos step_ns = offset_ns - std::exchange(offset_ns_, offset_ns);
    return std::abs(step_ns) > kStepNs ? std::optional(step_ns) : std::nullopt;
  }

private:
  static constexpr native::Nanos kStepNs = 5'000'000; // the kernel slews by 0.5 ms a second at most

  native::Nanos offset_ns_;
};

} // namespace crossgen
