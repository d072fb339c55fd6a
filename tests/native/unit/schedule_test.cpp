// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/schedule.hpp"

#include <gtest/gtest.h>

namespace sampler {
namespace {

TEST(Schedule, IsDueOnceADeadline) {
  Schedule schedule(1000, 10);
  EXPECT_FALSE(schedule.due(999));
  EXPECT_TRUE(schedule.due(1000));
  EXPECT_FALSE(schedule.due(1009));
  EXPECT_TRUE(schedule.due(1010));
  EXPECT_EQ(schedule.missed(), 0u);
}

TEST(Schedule, DoesNotDriftWhenASampleIsLate) {
  Schedule schedule(1000, 10);
  EXPECT_TRUE(schedule.due(1007));
  EXPECT_EQ(schedule.deadline_ns(), 1010);
}

TEST(Schedule, CountsTheDeadlinesThatItPassedOver) {
  Schedule schedule(1000, 10);
  EXPECT_TRUE(schedule.due(1000));
  EXPECT_TRUE(schedule.due(1045)); // 1010, 1020 and 1030 passed unseen
  EXPECT_EQ(schedule.missed(), 3u);
  EXPECT_EQ(schedule.deadline_ns(), 1050);
}

} // namespace
} // namespace sampler
