// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/ring_phase.hpp"

#include <gtest/gtest.h>
#include <random>

namespace replay {
namespace {

using native::Nanos;

constexpr Nanos kMs = 1'000'000;

Phase phase(std::uint64_t bytes, Nanos alone_ns) { return {"allreduce", 0, bytes, alone_ns}; }

TEST(RingPhase, SendsAtTheProfilesOwnDemand) {
  const RingPhase ring(phase(1000, 100 * kMs), 2, 1);
  constexpr std::uint64_t kAllReceived = 1000;
  EXPECT_EQ(ring.sendable(0, -kMs, 0, kAllReceived), 0u);
  EXPECT_EQ(ring.sendable(0, 0, 0, kAllReceived), 0u);
  EXPECT_EQ(ring.sendable(0, 25 * kMs, 0, kAllReceived), 250u);
  EXPECT_EQ(ring.sendable(0, 25 * kMs, 250, kAllReceived), 0u);
  EXPECT_EQ(ring.sendable(0, 100 * kMs, 250, kAllReceived), 750u);
  EXPECT_EQ(ring.sendable(0, 900 * kMs, 1000, kAllReceived), 0u);
}

TEST(RingPhase, GradientsThatLagPileUp) {
  const RingPhase ring(phase(1000, 100 * kMs), 2, 1);
  EXPECT_EQ(ring.sendable(0, 90 * kMs, 100, 1000), 800u);
}

TEST(RingPhase, AStepNeedsTheBytesOfTheOneBefore) {
  const RingPhase two(phase(1000, kMs), 2, 1); // 2 steps of 500
  EXPECT_EQ(two.sendable(0, kMs, 0, 0), 500u);
  EXPECT_EQ(two.sendable(0, kMs, 500, 0), 0u);
  EXPECT_EQ(two.sendable(0, kMs, 500, 120), 120u);
  EXPECT_EQ(two.sendable(0, kMs, 500, 1000), 500u);
  const RingPhase four(phase(1200, kMs), 4, 1); // 6 steps of 200
  EXPECT_EQ(four.sendable(0, kMs, 0, 0), 200u);
  EXPECT_EQ(four.sendable(0, kMs, 200, 150), 150u);
}

TEST(RingPhase, FlowsShareTheBytesEvenlyWithTheRemainderOnTheFirst) {
  const RingPhase ring(phase(1001, 100 * kMs), 2, 4);
  EXPECT_EQ(ring.share(0), 251u);
  EXPECT_EQ(ring.share(1), 250u);
  EXPECT_EQ(ring.share(0) + ring.share(1) + ring.share(2) + ring.share(3), 1001u);
  EXPECT_EQ(ring.sendable(1, 50 * kMs, 0, 1000), 125u);
}

TEST(RingPhase, LooksAgainAtTicksAndAtTheEndOfTheDemand) {
  const RingPhase ring(phase(1000, 10 * kMs + 1), 2, 1);
  EXPECT_EQ(ring.next_tick(-5), RingPhase::kTickNs);
  EXPECT_EQ(ring.next_tick(0), RingPhase::kTickNs);
  EXPECT_EQ(ring.next_tick(RingPhase::kTickNs - 1), RingPhase::kTickNs);
  EXPECT_EQ(ring.next_tick(RingPhase::kTickNs), 2 * RingPhase::kTickNs);
  EXPECT_EQ(ring.next_tick(10 * kMs), 10 * kMs + 1);
  EXPECT_EQ(ring.next_tick(10 * kMs + 1), std::nullopt);
}

TEST(RingPhase, WakesForTheLastBytesHoweverFew) {
  const RingPhase ring(phase(100'000, 10 * kMs), 2, 1);
  EXPECT_EQ(ring.receive_quantum(0, 0), 10'000u);
  EXPECT_EQ(ring.receive_quantum(0, 99'999), 1u);
  EXPECT_EQ(ring.receive_quantum(0, 100'000), 10'000u); // what comes now is of the next phase
}

// One phase among workers whose sockets deliver at once, each reading only when woken. Returns whether all bytes came.
bool completes(const Phase &phase, unsigned workers, unsigned flows) {
  const RingPhase ring(phase, workers, flows);
  for (unsigned flow = 0; flow < flows; flow++) {
    std::vector<std::uint64_t> sent(workers), received(workers);
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned worker = 0; worker < workers; worker++) {
        const std::uint64_t left_sent = sent[(worker + workers - 1) % workers];
        if (left_sent - received[worker] >= ring.receive_quantum(flow, received[worker]))
          moved |= left_sent > std::exchange(received[worker], left_sent);
        const std::uint64_t bytes = ring.sendable(flow, phase.alone_ns, sent[worker], received[worker]);
        sent[worker] += bytes;
        moved |= bytes > 0;
      }
    }
    for (unsigned worker = 0; worker < workers; worker++)
      if (sent[worker] != ring.share(flow) || received[worker] != ring.share(flow))
        return false;
  }
  return true;
}

TEST(RingPhase, NeverLeavesAllWorkersWaitingForEachOther) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; i++) {
    const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (random() % 30));
    const auto alone_ns = static_cast<Nanos>(1 + random() % (500 * kMs));
    const unsigned workers = 2 + static_cast<unsigned>(random() % 15);
    const unsigned flows = 1 + static_cast<unsigned>(random() % 8);
    EXPECT_TRUE(completes(phase(bytes, alone_ns), workers, flows))
        << bytes << " bytes, " << alone_ns << " ns, " << workers << " workers, " << flows << " flows";
  }
}

} // namespace
} // namespace replay
