// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/jitter.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace replay {
namespace {

TEST(Jitter, IsTheSameOnEveryMachine) {
  Jitter jitter(7, "j1", 0.005);
  for (const double expected : {1.0069366677167226, 1.006980963244225, 1.0039929610358187})
    EXPECT_NEAR(jitter.next_factor(), expected, 1e-15);
}

TEST(Jitter, IsTheSameForAllWorkersOfAJobAndDiffersBetweenJobsAndSeeds) {
  Jitter one(7, "j1", 0.005), other_worker(7, "j1", 0.005), other_job(7, "j2", 0.005), other_seed(8, "j1", 0.005);
  const double factor = one.next_factor();
  EXPECT_EQ(factor, other_worker.next_factor());
  EXPECT_NE(factor, other_job.next_factor());
  EXPECT_NE(factor, other_seed.next_factor());
}

TEST(Jitter, HasTheRequestedMeanAndDeviation) {
  constexpr int kDraws = 100'000;
  Jitter jitter(1, "j1", 0.01);
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; i++) {
    const double deviation = jitter.next_factor() - 1;
    sum += deviation;
    squares += deviation * deviation;
  }
  // Four standard errors.
  EXPECT_NEAR(sum / kDraws, 0, 4 * 0.01 / std::sqrt(kDraws));
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.01, 4 * 0.01 / std::sqrt(2.0 * kDraws));
}

TEST(Jitter, OfZeroIsNone) { EXPECT_EQ(Jitter(7, "j1", 0).next_factor(), 1); }

TEST(Jitter, NeverMakesTimeNegative) {
  Jitter jitter(7, "j1", 1);
  for (int i = 0; i < 1000; i++)
    EXPECT_GE(jitter.next_factor(), 0);
}

} // namespace
} // namespace replay
