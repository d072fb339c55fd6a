// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/rdma/credits.hpp"

#include <gtest/gtest.h>

namespace replay::rdma {
namespace {

TEST(Credits, AreAsManyAsReceivesWait) {
  Credits credits;
  for (std::uint32_t i = 0; i < kChunks; i++) {
    ASSERT_TRUE(credits.any());
    credits.spend();
  }
  EXPECT_FALSE(credits.any());
  EXPECT_TRUE(credits.gain(1));
  EXPECT_TRUE(credits.any());
}

TEST(Credits, MoreThanWereSpentAreRefused) {
  Credits credits;
  EXPECT_FALSE(credits.gain(1));
  Credits others;
  others.spend();
  EXPECT_FALSE(others.gain(0xffffffff));
}

TEST(Credits, SenderAndReceiverNeverWaitForEachOther) {
  Credits credits;
  Untold untold;
  for (std::uint32_t chunk = 0; chunk < 10 * kChunks; chunk++) {
    ASSERT_TRUE(credits.any()) << chunk;
    credits.spend();
    untold.add();
    if (untold.worth_saying()) {
      ASSERT_TRUE(credits.gain(untold.take()));
    }
  }
}

TEST(Word, ComesAsItWasSaid) {
  for (const Word word : {Word{0, true}, Word{kWorthSaying, false}, Word{kChunks, true}})
    EXPECT_EQ(Word::unpacked(word.packed()), word);
}

} // namespace
} // namespace replay::rdma
