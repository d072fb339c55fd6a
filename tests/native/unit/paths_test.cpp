// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/paths/path_bitmap.hpp"
#include "roundabout/models/packets/native/paths/recycled_entropies.hpp"

#include <gtest/gtest.h>
#include <set>

namespace packets {
namespace {

constexpr std::uint32_t kPaths = 8;

TEST(PathBitmap, TakesAllPathsInTurn) {
  Random random(1);
  PathBitmap bitmap(kPaths, random);
  for (int turn = 0; turn < 5; turn++) {
    std::set<std::uint32_t> taken;
    for (std::uint32_t i = 0; i < kPaths; i++)
      taken.insert(bitmap.next(random));
    EXPECT_EQ(taken.size(), kPaths);
  }
}

TEST(PathBitmap, SkipsAPathOnceForEachUnitOfItsPenalty) {
  for (const auto &[feedback, skips] : {std::pair{PathFeedback::kClean, 0},
                                        {PathFeedback::kMarked, 1},
                                        {PathFeedback::kTrimmed, 4},
                                        {PathFeedback::kLost, 15}}) {
    Random random(2);
    PathBitmap bitmap(kPaths, random);
    bitmap.learn(3, feedback);
    int before = 0, others = kPaths - 1; // in each turn that skips it
    while (bitmap.next(random) != 3)
      before++;
    EXPECT_GE(before, skips * others);
    EXPECT_LE(before, (skips + 1) * others);
  }
}

TEST(PathBitmap, TakesSomePathIfAllHavePenalties) {
  Random random(3);
  PathBitmap bitmap(kPaths, random);
  for (std::uint32_t path = 0; path < kPaths; path++)
    bitmap.learn(path, PathFeedback::kLost);
  for (int i = 0; i < 100; i++)
    EXPECT_LT(bitmap.next(random), kPaths);
}

TEST(RecycledEntropies, TakesCleanPathsOnceInTheOrderOfTheirAcks) {
  Random random(4);
  RecycledEntropies recycled;
  for (const std::uint32_t path : {900, 901, 902})
    recycled.learn(path, PathFeedback::kClean, 0);
  recycled.learn(903, PathFeedback::kMarked, 0);
  recycled.learn(904, PathFeedback::kTrimmed, 0);
  for (const std::uint32_t path : {900, 901, 902})
    EXPECT_EQ(recycled.next(kPaths, random), path);
  EXPECT_LT(recycled.next(kPaths, random), kPaths); // drawn
}

TEST(RecycledEntropies, KeepsTheLatestEight) {
  Random random(5);
  RecycledEntropies recycled;
  for (std::uint32_t path = 900; path < 910; path++)
    recycled.learn(path, PathFeedback::kClean, 0);
  for (std::uint32_t path = 902; path < 910; path++)
    EXPECT_EQ(recycled.next(kPaths, random), path);
  EXPECT_LT(recycled.next(kPaths, random), kPaths);
}

TEST(RecycledEntropies, RepeatsItsPathsForTenMillisecondsAfterALoss) {
  Random random(6);
  RecycledEntropies recycled;
  recycled.learn(900, PathFeedback::kClean, 0);
  recycled.learn(901, PathFeedback::kClean, 0);
  recycled.learn(7, PathFeedback::kLost, 0);
  for (int i = 0; i < 100; i++)
    EXPECT_EQ(recycled.next(kPaths, random), 900U + i % 2);
  recycled.learn(902, PathFeedback::kClean, 10'000'000'001);
  for (int i = 0; i < 16; i++) // It explores, with no path of before.
    EXPECT_LT(recycled.next(kPaths, random), kPaths);
  EXPECT_EQ(recycled.next(kPaths, random), 902U);
}

} // namespace
} // namespace packets
