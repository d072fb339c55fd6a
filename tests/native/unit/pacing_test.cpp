// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/pacing.hpp"

#include <gtest/gtest.h>
#include <random>

namespace replay {
namespace {

using native::Nanos;

constexpr Nanos kMs = 1'000'000;

// One step of a ring of so many workers, over one of several connections.
Pace ring(std::uint64_t bytes, Nanos alone_ns, unsigned workers = 2, unsigned connections = 1, unsigned number = 0) {
  const std::uint64_t steps = 2 * (workers - 1);
  return {Transfer{0, 1, bytes, (bytes + steps - 1) / steps}, alone_ns, connections, number};
}

Pace free_pace(std::uint64_t bytes, Nanos alone_ns) { return {Transfer{0, 1, bytes, {}}, alone_ns, 1, 0}; }

TEST(Pace, SendsAtTheProfilesOwnDemand) {
  constexpr std::uint64_t kAllReceived = 1000;
  for (const Pace &pace : {ring(1000, 100 * kMs), free_pace(1000, 100 * kMs)}) {
    EXPECT_EQ(pace.sendable(-kMs, 0, kAllReceived), 0u);
    EXPECT_EQ(pace.sendable(0, 0, kAllReceived), 0u);
    EXPECT_EQ(pace.sendable(25 * kMs, 0, kAllReceived), 250u);
    EXPECT_EQ(pace.sendable(25 * kMs, 250, kAllReceived), 0u);
    EXPECT_EQ(pace.sendable(100 * kMs, 250, kAllReceived), 750u);
    EXPECT_EQ(pace.sendable(900 * kMs, 1000, kAllReceived), 0u);
  }
}

TEST(Pace, GradientsThatLagPileUp) { EXPECT_EQ(ring(1000, 100 * kMs).sendable(90 * kMs, 100, 1000), 800u); }

TEST(Pace, AStepNeedsTheBytesOfTheOneBefore) {
  const Pace two = ring(1000, kMs); // 2 steps of 500
  EXPECT_EQ(two.sendable(kMs, 0, 0), 500u);
  EXPECT_EQ(two.sendable(kMs, 500, 0), 0u);
  EXPECT_EQ(two.sendable(kMs, 500, 120), 120u);
  EXPECT_EQ(two.sendable(kMs, 500, 1000), 500u);
  const Pace four = ring(1200, kMs, 4); // 6 steps of 200
  EXPECT_EQ(four.sendable(kMs, 0, 0), 200u);
  EXPECT_EQ(four.sendable(kMs, 200, 150), 150u);
}

TEST(Pace, WithoutALeadNothingReceivedIsNeeded) { EXPECT_EQ(free_pace(1000, kMs).sendable(kMs, 0, 0), 1000u); }

TEST(Pace, InAPipelineWhatWasReceivedIsPassedOn) {
  const Pace middle(Transfer{1, 2, 1000, 0}, 100 * kMs, 1, 0);
  EXPECT_EQ(middle.sendable(100 * kMs, 0, 0), 0u);
  EXPECT_EQ(middle.sendable(100 * kMs, 100, 300), 200u);
  EXPECT_EQ(middle.sendable(10 * kMs, 0, 300), 100u); // never before its own demand
  EXPECT_EQ(middle.receive_quantum(0), 10u);          // no circle: no need to look more often
}

TEST(Pace, ConnectionsShareTheBytesEvenlyWithTheRemainderOnTheFirst) {
  std::uint64_t sum = 0;
  for (unsigned number = 0; number < 4; number++)
    sum += ring(1001, 100 * kMs, 2, 4, number).share();
  EXPECT_EQ(sum, 1001u);
  EXPECT_EQ(ring(1001, 100 * kMs, 2, 4, 0).share(), 251u);
  EXPECT_EQ(ring(1001, 100 * kMs, 2, 4, 1).share(), 250u);
  EXPECT_EQ(ring(1001, 100 * kMs, 2, 4, 1).sendable(50 * kMs, 0, 1000), 125u);
}

TEST(Pace, LooksAgainAtTicksAndAtTheEndOfTheDemand) {
  const Pace pace = ring(1000, 10 * kMs + 1);
  EXPECT_EQ(pace.next_tick(-5), Pace::kTickNs);
  EXPECT_EQ(pace.next_tick(0), Pace::kTickNs);
  EXPECT_EQ(pace.next_tick(Pace::kTickNs - 1), Pace::kTickNs);
  EXPECT_EQ(pace.next_tick(Pace::kTickNs), 2 * Pace::kTickNs);
  EXPECT_EQ(pace.next_tick(10 * kMs), 10 * kMs + 1);
  EXPECT_EQ(pace.next_tick(10 * kMs + 1), std::nullopt);
}

TEST(Pace, WakesForTheLastBytesHoweverFew) {
  const Pace pace = ring(100'000, 10 * kMs);
  EXPECT_EQ(pace.receive_quantum(0), 10'000u);
  EXPECT_EQ(pace.receive_quantum(99'999), 1u);
  EXPECT_EQ(pace.receive_quantum(100'000), 10'000u); // what comes now is of the next phase
}

// One ring among workers whose sockets deliver at once, each reading only when woken. Returns whether all bytes came.
bool completes(std::uint64_t bytes, Nanos alone_ns, unsigned workers, unsigned connections) {
  for (unsigned number = 0; number < connections; number++) {
    const Pace pace = ring(bytes, alone_ns, workers, connections, number);
    std::vector<std::uint64_t> sent(workers), received(workers);
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned worker = 0; worker < workers; worker++) {
        const std::uint64_t left_sent = sent[(worker + workers - 1) % workers];
        if (left_sent - received[worker] >= pace.receive_quantum(received[worker]))
          moved |= left_sent > std::exchange(received[worker], left_sent);
        const std::uint64_t more = pace.sendable(alone_ns, sent[worker], received[worker]);
        sent[worker] += more;
        moved |= more > 0;
      }
    }
    for (unsigned worker = 0; worker < workers; worker++)
      if (sent[worker] != pace.share() || received[worker] != pace.share())
        return false;
  }
  return true;
}

TEST(Pace, NeverLeavesAllWorkersOfARingWaitingForEachOther) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; i++) {
    const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (random() % 30));
    const auto alone_ns = static_cast<Nanos>(1 + random() % (500 * kMs));
    const unsigned workers = 2 + static_cast<unsigned>(random() % 15);
    const unsigned connections = 1 + static_cast<unsigned>(random() % 8);
    EXPECT_TRUE(completes(bytes, alone_ns, workers, connections))
        << bytes << " bytes, " << alone_ns << " ns, " << workers << " workers, " << connections << " connections";
  }
}

} // namespace
} // namespace replay
