// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace crossgen {

// Random numbers that are the same on every machine: std::mt19937_64 and std::seed_seq are defined to the bit, the
// standard library's distributions are not.
class Random {
public:
  // Creates stream `stream` of a seed; streams of one seed are independent.
  Random(std::uint64_t seed, std::uint32_t stream);

  double uniform() { return static_cast<double>((generator_() >> 11) + 1) * 0x1p-53; } // in (0, 1]
  double exponential();                                                                // of mean 1
  double normal();                                                                     // N(0, 1)
  double poisson(double mean);                                                         // a whole number
  std::size_t below(std::size_t limit);

private:
  double poisson_by_product(double mean);
  double poisson_by_rejection(double mean);

  std::mt19937_64 generator_;
};

} // namespace crossgen
