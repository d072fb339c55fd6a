// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/options.hpp"

#include <gtest/gtest.h>
#include <map>

namespace replay {
namespace {

constexpr const char *kProfile = R"({"phases": [{"name": "a", "bytes": 1000, "alone_ms": 1}]})";

using Arguments = std::map<std::string, std::string>;

Arguments good() {
  return {{"--job", "j1"},         {"--rank", "1"},     {"--addresses", "10.0.0.1,10.0.0.2,10.0.0.3"},
          {"--names", "s0,s1,s2"}, {"--port", "29500"}, {"--profile", kProfile},
          {"--iterations", "5"},   {"--seed", "7"},     {"--jitter", "0.005"}};
}

std::variant<Options, int> parse(const Arguments &arguments) {
  std::vector<std::string> words{"replay"};
  for (const auto &[option, value] : arguments)
    words.insert(words.end(), {option, value});
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

// What is said on standard error when `option` has this value; checks that the exit status is that of bad usage.
std::string complaint(const std::string &option, const std::string &value) {
  Arguments arguments = good();
  arguments[option] = value;
  testing::internal::CaptureStderr();
  const auto result = parse(arguments);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::holds_alternative<int>(result) ? std::get<int>(result) : 0, 2) << option << ' ' << value;
  return text;
}

TEST(ReplayOptions, NameTheNeighboursInTheRing) {
  const auto options = std::get<Options>(parse(good()));
  EXPECT_EQ(options.left().text(), "s0 (10.0.0.1)");
  EXPECT_EQ(options.right().text(), "s2 (10.0.0.3)");
  EXPECT_EQ(options.flows, 1u);
}

TEST(ReplayOptions, FirstAndLastAreNeighbours) {
  Arguments arguments = good();
  arguments["--rank"] = "0";
  EXPECT_EQ(std::get<Options>(parse(arguments)).left().name, "s2");
  arguments["--rank"] = "2";
  EXPECT_EQ(std::get<Options>(parse(arguments)).right().name, "s0");
}

TEST(ReplayOptions, WorkersOfOneJobHaveOneFingerprint) {
  Arguments arguments = good();
  const std::uint64_t ours = std::get<Options>(parse(arguments)).fingerprint;
  arguments["--rank"] = "2";
  EXPECT_EQ(std::get<Options>(parse(arguments)).fingerprint, ours);
  arguments["--seed"] = "8";
  EXPECT_NE(std::get<Options>(parse(arguments)).fingerprint, ours);
}

TEST(ReplayOptions, ComplaintsNameTheOptionAndWhatWasFound) {
  EXPECT_EQ(complaint("--rank", "3"), "replay: --rank: expected less than the number of addresses, 3, found 3\n");
  EXPECT_EQ(complaint("--addresses", "10.0.0.1"), "replay: --addresses: expected at least 2 workers, found 1\n");
  EXPECT_EQ(complaint("--addresses", "10.0.0.1,s1,10.0.0.3"),
            "replay: --addresses: expected IPv4 addresses, found \"s1\"\n");
  EXPECT_EQ(complaint("--addresses", "10.0.0.1,10.0.0.2,10.0.0.1"), "replay: --addresses: 10.0.0.1 is given twice\n");
  EXPECT_EQ(complaint("--names", "s0,s1"), "replay: --names: expected 3, one an address, found 2\n");
  EXPECT_EQ(complaint("--job", "a b"),
            "replay: --job: expected 1 to 63 of letters, digits, '.', '_', '-', found \"a b\"\n");
  EXPECT_EQ(complaint("--profile", "{"), "replay: profile: not JSON: {\n");
}

TEST(ReplayOptions, NumbersOutOfRangeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"--rank", "-1"},           {"--rank", "x"},   {"--port", "0"},      {"--port", "65536"}, {"--iterations", "0"},
      {"--flows", "0"},           {"--flows", "65"}, {"--jitter", "-0.1"}, {"--jitter", "nan"}, {"--seed", "-1"},
      {"--start-offset-ms", "-1"}};
  for (const auto &[option, value] : bad)
    EXPECT_NE(complaint(option, value).find(option), std::string::npos) << option << ' ' << value;
}

} // namespace
} // namespace replay
