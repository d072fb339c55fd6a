// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/cpu_time.hpp"
#include "collectors/sampler/sources/tcp_counters.hpp"

#include "native/errors.hpp"

#include <gtest/gtest.h>

namespace sampler {
namespace {

TEST(Stat, SumsBusyAndIdleTicks) {
  const CpuTicks ticks = parse_stat("cpu  1 2 4 100 200 8 16 32 64 128\ncpu0 1 2 4 100 200 8 16 32 0 0\n");
  EXPECT_EQ(ticks.busy, 1u + 2 + 4 + 8 + 16);
  EXPECT_EQ(ticks.idle, 300u);
  EXPECT_EQ(ticks.steal, 32u);
  EXPECT_THROW(parse_stat("cpu 1 2 3\n"), native::Failure);
}

TEST(Softnet, SumsTheCpusHexadecimalCounters) {
  const Softnet sum = parse_softnet("0000000a 00000001 00000002 00000000\n00000010 00000000 000000ff 00000000\n");
  EXPECT_EQ(sum.processed, 26u);
  EXPECT_EQ(sum.dropped, 1u);
  EXPECT_EQ(sum.squeezed, 257u);
  EXPECT_THROW(parse_softnet("xyz\n"), native::Failure);
}

TEST(Counter, IsFoundByGroupAndName) {
  const std::string text = "Ip: InReceives\nIp: 5\nTcp: OutSegs RetransSegs\nTcp: 7 9\n";
  EXPECT_EQ(parse_counter(text, "Tcp", "RetransSegs"), 9u);
  EXPECT_EQ(parse_counter(text, "Ip", "InReceives"), 5u);
  EXPECT_THROW(parse_counter(text, "Tcp", "InReceives"), native::Failure);
}

} // namespace
} // namespace sampler
