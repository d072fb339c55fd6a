// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/clock_watch.hpp"

#include <gtest/gtest.h>

namespace crossgen {
namespace {

constexpr native::Nanos kMs = 1'000'000;

TEST(ClockWatch, DistinguishesASteppedClockFromASlewedOne) {
  ClockWatch clock(100 * kMs);
  EXPECT_EQ(clock.look(100 * kMs), std::nullopt);
  EXPECT_EQ(clock.look(101 * kMs), std::nullopt);
  EXPECT_EQ(clock.look(1'101 * kMs), 1'000 * kMs);
  EXPECT_EQ(clock.look(1'101 * kMs), std::nullopt);
  EXPECT_EQ(clock.look(101 * kMs), -1'000 * kMs);
}

} // namespace
} // namespace crossgen
