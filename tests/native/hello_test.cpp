// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/hello.hpp"

#include <gtest/gtest.h>

namespace replay {
namespace {

const Hello kExpected{"j1", 0, 0, 42};

std::string judge(const std::string &text, unsigned flows = 2) {
  unsigned flow = 0;
  return judge_hello(text, kExpected, flows, flow);
}

TEST(Hello, OfTheExpectedNeighbourIsWelcomeWithItsFlow) {
  unsigned flow = 0;
  EXPECT_EQ(judge_hello(Hello{"j1", 0, 1, 42}.text(), kExpected, 2, flow), "");
  EXPECT_EQ(flow, 1u);
}

TEST(Hello, OfAnotherJobOrRankIsNamed) {
  EXPECT_EQ(judge(Hello{"j2", 0, 0, 42}.text()), "expected job j1 rank 0, found job j2 rank 0");
  EXPECT_EQ(judge(Hello{"j1", 3, 0, 42}.text()), "expected job j1 rank 0, found job j1 rank 3");
}

TEST(Hello, OfAWorkerThatWasGivenOtherOptionsIsRefused) {
  EXPECT_NE(judge(Hello{"j1", 0, 0, 43}.text()).find("was given other options"), std::string::npos);
}

TEST(Hello, OfAFlowThatDoesNotExistIsRefused) {
  EXPECT_EQ(judge(Hello{"j1", 0, 2, 42}.text()), "expected a flow below 2, found 2");
}

TEST(Hello, ThatIsSomethingElseIsRefused) {
  for (const std::string text : {"", "GET / HTTP/1.1", "roundabout-replay-1 j1", "roundabout-replay-1 j1 x 0 42"})
    EXPECT_EQ(judge(text), "expected a replay worker's hello, found something else") << text;
}

TEST(Message, KeepsTextAndCutsWhatIsTooLong) {
  EXPECT_EQ(to_text(to_message("welcome")), "welcome");
  EXPECT_EQ(to_text(to_message(std::string(1000, 'x'))), std::string(255, 'x'));
}

TEST(Fnv1a, MatchesItsPublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

} // namespace
} // namespace replay
