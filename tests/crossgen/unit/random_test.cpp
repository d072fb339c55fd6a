// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/random.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace crossgen {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <typename Draw> Moments moments(const Draw &draw) {
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; i++) {
    const double value = draw();
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

TEST(Random, IsTheSameForTheSameSeedAndStreamOnly) {
  Random one(7, 1), same(7, 1), stream(7, 2), seed(8, 1);
  const double value = one.uniform();
  EXPECT_EQ(value, same.uniform());
  EXPECT_NE(value, stream.uniform());
  EXPECT_NE(value, seed.uniform());
}

TEST(Random, ExponentialAndNormalHaveTheirMoments) {
  Random random(1, 0);
  const Moments exponential = moments([&] { return random.exponential(); });
  EXPECT_NEAR(exponential.mean, 1, .01);
  EXPECT_NEAR(exponential.variance, 1, .03);
  const Moments normal = moments([&] { return random.normal(); });
  EXPECT_NEAR(normal.mean, 0, .01);
  EXPECT_NEAR(normal.variance, 1, .02);
}

class Poisson : public testing::TestWithParam<double> {};

TEST_P(Poisson, HasItsMeanAsVariance) {
  Random random(1, 0);
  const double mean = GetParam();
  const Moments poisson = moments([&] { return random.poisson(mean); });
  EXPECT_NEAR(poisson.mean, mean, 4 * std::sqrt(mean / 200'000));
  EXPECT_NEAR(poisson.variance, mean, .03 * mean);
}

INSTANTIATE_TEST_SUITE_P(Means, Poisson, testing::Values(.01, .5, 9.9, 10, 137, 2282));

TEST(Random, BelowALimitEveryNumberComes) {
  Random random(1, 0);
  int seen[3] = {};
  for (int i = 0; i < 3000; i++)
    seen[random.below(3)]++;
  for (const int count : seen)
    EXPECT_NEAR(count, 1000, 100);
}

} // namespace
} // namespace crossgen
