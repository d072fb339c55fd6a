// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/options.hpp"

#include <gtest/gtest.h>

namespace replay {
namespace {

constexpr const char *kJob = R"({
  "name": "j1", "connections": 1, "iterations": 5, "seed": 7, "jitter": 0, "begins_ms": 0, "departs_ms": null,
  "workers": [{"name": "s0", "address": "10.0.0.1", "port": 29500}, {"name": "s1", "address": "10.0.0.2", "port": 29500}],
  "phases": [{"name": "send", "alone_ms": 2, "transfers": [[0, 1, 1000, 250]]}]})";

std::variant<Options, int> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "replay");
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

// What is said on standard error; checks that the exit status is that of bad usage.
std::string complaint(const std::vector<std::string> &words) {
  testing::internal::CaptureStderr();
  const auto result = parse(words);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::holds_alternative<int>(result) ? std::get<int>(result) : 0, 2) << text;
  return text;
}

TEST(ReplayOptions, SayWhichWorkerOfTheJobThisIs) {
  const auto options = std::get<Options>(parse({"--job", kJob, "--rank", "1"}));
  EXPECT_EQ(options.self().name, "s1");
  EXPECT_EQ(options.job.iterations, 5u);
}

TEST(ReplayOptions, ComplaintsNameTheOptionAndWhatWasFound) {
  EXPECT_EQ(complaint({"--job", kJob, "--rank", "2"}),
            "replay: --rank: expected less than the number of workers, 2, found 2\n");
  EXPECT_EQ(complaint({"--job", "{", "--rank", "0"}), "replay: job: not JSON: {\n");
  for (const char *rank : {"-1", "x"})
    EXPECT_NE(complaint({"--job", kJob, "--rank", rank}).find("--rank"), std::string::npos) << rank;
  EXPECT_NE(complaint({"--rank", "0"}).find("--job"), std::string::npos);
}

} // namespace
} // namespace replay
