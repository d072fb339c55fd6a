// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/jitter.hpp"

#include "trainers/replay/network/hello.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace replay {

Jitter::Jitter(std::uint64_t seed, const std::string &job, double relative)
    : generator_(seed ^ fnv1a(job)), relative_(relative) {}

double Jitter::next_factor() {
  const double radius = std::sqrt(-2 * std::log(uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * uniform());
  return std::max(0.0, 1 + relative_ * normal);
}

// In (0, 1], 53 bits.
double Jitter::uniform() { return static_cast<double>((generator_() >> 11) + 1) * 0x1p-53; }

} // namespace replay
