// SPDX-License-Identifier: Apache-2.0
#include "crossgen/sizes.hpp"

#include "crossgen/random.hpp"
#include "native/errors.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

namespace crossgen {
namespace {

std::string refusal(const std::string &text) {
  std::istringstream in(text);
  try {
    Sizes::parse(in, "sizes.txt", Between::kLinear);
  } catch (const native::Failure &error) {
    return error.what();
  }
  return "taken";
}

TEST(Sizes, WebSearchHasItsMeans) {
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kLinear).mean_bytes(), 1'711'250);
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kSteps).mean_bytes(), 2'434'900);
}

TEST(Sizes, QuantilesAreLinearBetweenPoints) {
  const Sizes sizes = Sizes::web_search(Between::kLinear);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(0), 0);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.15), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.175), 15'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(1), 30'000'000);
}

TEST(Sizes, StepsAreDrawnAsTheyAreListed) {
  const Sizes sizes = Sizes::web_search(Between::kSteps);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(1e-16), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.15), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.150001), 20'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.97), 10'000'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.970001), 30'000'000);
}

TEST(Sizes, DrawsHaveTheMean) {
  for (const Between between : {Between::kLinear, Between::kSteps}) {
    const Sizes sizes = Sizes::web_search(between);
    Random random(1, 0);
    double sum = 0, squares = 0;
    constexpr int kDraws = 1'000'000;
    for (int i = 0; i < kDraws; i++) {
      const double bytes = sizes.quantile_bytes(random.uniform());
      sum += bytes;
      squares += bytes * bytes;
    }
    const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
    EXPECT_NEAR(mean, sizes.mean_bytes(), 3 * deviation / std::sqrt(kDraws));
  }
}

TEST(Sizes, ScaleWithAFactor) {
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kLinear).scaled(.01).mean_bytes(), 17'112.5);
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kSteps).scaled(.01).mean_bytes(), 24'349);
}

TEST(Sizes, AFileIsReadWithItsComments) {
  std::istringstream in("# bytes share\n100 0\n\n100 0.5 # half are 100\n300 1\n");
  const Sizes sizes = Sizes::parse(in, "sizes.txt", Between::kLinear);
  EXPECT_DOUBLE_EQ(sizes.mean_bytes(), 150);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.3), 100);
}

TEST(Sizes, WhatIsNoDistributionIsRefusedByItsLine) {
  EXPECT_EQ(refusal("0 0\n10 .5\n20 .4\n30 1\n"),
            "sizes.txt, line 3: expected a cumulative probability above 0.5, the line before's, found .4");
  EXPECT_EQ(refusal("0 0\n20 .5\n10 1\n"),
            "sizes.txt, line 3: expected a size of at least 20 bytes, the line before's, found 10");
  EXPECT_EQ(refusal("0 0\n10 .5\n20 .5\n30 1\n"),
            "sizes.txt, line 3: expected a cumulative probability above 0.5, the line before's, found .5");
  EXPECT_EQ(refusal("10 .2\n30 1\n"),
            "sizes.txt, line 1: expected cumulative probability 0 at the first size, found .2");
  EXPECT_EQ(refusal("0 0\n30 .9\n"), "sizes.txt, line 2: expected the last cumulative probability to be 1, found 0.9");
  EXPECT_EQ(refusal("0 0\n30\n40 1\n"), "sizes.txt, line 2: expected `BYTES CUMULATIVE_PROBABILITY`, found `30`");
  EXPECT_EQ(refusal("0 0\n30 nan\n"), "sizes.txt, line 2: expected `BYTES CUMULATIVE_PROBABILITY`, found `30 nan`");
  EXPECT_EQ(refusal("0 0\n30 1.5\n"), "sizes.txt, line 2: expected a cumulative probability up to 1, found 1.5");
  EXPECT_EQ(refusal("0 0\n0 1\n"), "sizes.txt, line 2: expected a size above 0 bytes, found none");
  EXPECT_EQ(refusal(""), "sizes.txt, line 0: expected the last cumulative probability to be 1, found nothing");
}

} // namespace
} // namespace crossgen
