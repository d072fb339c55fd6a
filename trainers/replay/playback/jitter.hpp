// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace replay {

// How much longer or shorter each iteration computes: 1 + relative * N(0, 1), never below 0.
//
// Drawn once an iteration for the whole job: data-parallel workers wait for each other in every all-reduce, so what
// counts is the slowest worker's time, and each worker draws the same from the same seed. The job's name is mixed into
// the seed, so that two jobs of one trial do not jitter in step. The same on every machine: std::mt19937_64 is defined
// to the bit, and the normal numbers are our own (Box and Muller 1958; the standard library's are not specified).
class Jitter {
public:
  Jitter(std::uint64_t seed, const std::string &job, double relative);

  double next_factor();

private:
  double uniform();

  std::mt19937_64 generator_;
  double relative_;
};

} // namespace replay
