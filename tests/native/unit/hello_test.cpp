// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/network/hello.hpp"
#include "trainers/replay/playback/job.hpp"

#include <gtest/gtest.h>

namespace replay {
namespace {

const Expected kExpected{"j1", {{0, {0, 1}}, {3, {1}}}, 42, "open-sesame"};

std::string judge(const std::string &text) {
  Hello hello;
  return judge_hello(text, kExpected, hello);
}

TEST(Hello, OfAnExpectedWorkerIsAcceptedWithItsConnection) {
  Hello hello;
  EXPECT_EQ(judge_hello(Hello{"j1", 3, 1, 42, "open-sesame"}.text(), kExpected, hello), "");
  EXPECT_EQ(hello.rank, 3u);
  EXPECT_EQ(hello.connection, 1u);
}

TEST(Hello, OfAnotherJobOrRankIsNamed) {
  EXPECT_EQ(judge(Hello{"j2", 0, 0, 42, "open-sesame"}.text()), "expected job j1 rank 0 or 3, found job j2 rank 0");
  EXPECT_EQ(judge(Hello{"j1", 1, 0, 42, "open-sesame"}.text()), "expected job j1 rank 0 or 3, found job j1 rank 1");
}

TEST(Hello, OfAWorkerWithAnotherJobIsRefused) {
  EXPECT_NE(judge(Hello{"j1", 0, 0, 43, "open-sesame"}.text()).find("received another job"), std::string::npos);
}

TEST(Hello, OfAConnectionThatDoesNotExistIsRefused) {
  EXPECT_EQ(judge(Hello{"j1", 0, 2, 42, "open-sesame"}.text()), "expected connection 0 or 1, found 2");
  EXPECT_EQ(judge(Hello{"j1", 3, 0, 42, "open-sesame"}.text()), "expected connection 1, found 0");
}

TEST(Hello, IsKnownByItsSecret) {
  const std::string hello = Hello{"j1", 3, 1, 42, "open-sesame"}.text();
  EXPECT_TRUE(has_secret(hello, kExpected));
  EXPECT_FALSE(has_secret(Hello{"j1", 3, 1, 42, "open-sesamE"}.text(), kExpected));
  EXPECT_FALSE(has_secret(Hello{"j1", 3, 1, 42, ""}.text(), kExpected));
  EXPECT_FALSE(has_secret("x" + hello, kExpected));
  EXPECT_FALSE(has_secret("", kExpected));
}

TEST(Hello, OfTheLongestNamesFitsItsMessage) {
  const std::string text = Hello{std::string(kLongestJobName, 'j'), ~0u, ~0u, ~0ull, std::string(64, 's')}.text();
  EXPECT_EQ(to_text(to_message(text)), text);
}

TEST(Hello, ThatIsSomethingElseIsRefused) {
  for (const std::string text : {"", "GET / HTTP/1.1", "roundabout-replay-3 s j1", "roundabout-replay-3 s j1 x 0 42"})
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
