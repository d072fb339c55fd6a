// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/histogram.hpp"

#include <gtest/gtest.h>

namespace crossgen {
namespace {

TEST(Histogram, PercentilesAreRightToAThousandth) {
  Histogram histogram;
  for (std::int64_t i = 1; i <= 1'000'000; i++)
    histogram.record(i * 1000);
  EXPECT_EQ(histogram.count(), 1'000'000u);
  for (const double percent : {1., 50., 90., 99., 99.9})
    EXPECT_NEAR(static_cast<double>(histogram.percentile(percent)), percent * 1e7, percent * 1e4);
  EXPECT_EQ(histogram.percentile(100), 1'000'000'000u);
  EXPECT_NEAR(histogram.mean(), 500'000'500, 1);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::int64_t i = 0; i < 2048; i++)
    histogram.record(i);
  EXPECT_EQ(histogram.percentile(50), 1023u);
}

TEST(Histogram, ValuesOutOfRangeCountAsTheNearest) {
  Histogram histogram;
  histogram.record(-5);
  histogram.record(INT64_MAX);
  EXPECT_EQ(histogram.percentile(50), 0u);
  EXPECT_EQ(histogram.most(), std::uint64_t{1} << 42);
}

TEST(Histogram, SaysNothingWhereNothingWasRecorded) { EXPECT_TRUE(Histogram().json(1).is_null()); }

} // namespace
} // namespace crossgen
