// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace crossgen {
namespace {

std::mt19937_64 seeded(std::uint64_t seed, std::uint32_t stream) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), stream};
  return std::mt19937_64(sequence);
}

} // namespace

Random::Random(std::uint64_t seed, std::uint32_t stream) : generator_(seeded(seed, stream)) {}

double Random::exponential() { return -std::log(uniform()); }

// Box and Muller 1958.
double Random::normal() {
  const double radius = std::sqrt(2 * exponential());
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Random::poisson(double mean) { return mean < 10 ? poisson_by_product(mean) : poisson_by_rejection(mean); }

// Counts the arrivals of a unit process: Knuth's.
double Random::poisson_by_product(double mean) {
  const double limit = std::exp(-mean);
  double count = 0;
  for (double product = uniform(); product > limit; product *= uniform())
    count++;
  return count;
}

// Hörmann 1993, "The transformed rejection method for generating Poisson random variables", algorithm PTRS.
double Random::poisson_by_rejection(double mean) {
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = uniform() - 0.5;
    const double v = uniform();
    const double us = 0.5 - std::abs(u);
    if (us <= 0)
      continue;
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r)
      return k;
    if (k < 0 || (us < 0.013 && v > us))
      continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= k * std::log(mean) - mean - std::lgamma(k + 1))
      return k;
  }
}

std::size_t Random::below(std::size_t limit) {
  return std::min(static_cast<std::size_t>((1 - uniform()) * static_cast<double>(limit)), limit - 1);
}

} // namespace crossgen
