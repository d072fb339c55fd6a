// SPDX-License-Identifier: Apache-2.0
// Units and random numbers. Integers alone, so that a seed gives the same packets on every machine.
#pragma once

#include <cstdint>
#include <limits>

namespace packets {

using Picos = std::int64_t; // an instant or a time; 2^63 ps are 106 days
using Bytes = std::int64_t;

inline constexpr double kPsPerSecond = 1e12;
inline constexpr Picos kNever = std::numeric_limits<Picos>::max();
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max(); // no index

// SplitMix64 (Steele, Lea and Flood, OOPSLA'14).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // In [0, 1), 53 bits.
  double uniform() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

  // In [0, count).
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(uniform() * count); }

private:
  std::uint64_t state_;
};

} // namespace packets
