// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace fluid {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kRounding = 1 + 1e-12; // times as much is still the same: sums of rates round off

inline std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

} // namespace fluid
