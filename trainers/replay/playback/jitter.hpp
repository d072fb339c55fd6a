// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace replay {

// Random factors of each iteration's computing time: 1 + relative * N(0, 1), and at least 0.
//
// One factor is drawn per iteration for the whole job. Data-parallel workers wait for each other in every all-reduce,
// so only the slowest worker's time matters, and all workers draw equal factors from one seed. The job's name is mixed
// into the seed, so that two jobs of a trial do not jitter in step. Factors are equal on every machine: std::mt19937_64
// is defined to the bit, and the normal numbers are our own (Box and Muller 1958), because the standard library's are
// not specified.
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
