// SPDX-License-Identifier: Apache-2.0
// Every input that is kept, and a few thousand mutations of them: the slice of fuzzing that any compiler can do.
#include "tests/fuzz/parsers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace fuzz {
namespace {

constexpr int kMutations = 2000; // of each parser's inputs
constexpr char kSpecialBytes[] = {'\0', '\xff', '\x7f', '\x80', '\n', ' ', '"', '{', '}', '-', '9', 'e', '.'};

std::vector<std::string> kept(const std::string &parser) {
  std::vector<std::string> inputs;
  for (const auto &entry : std::filesystem::directory_iterator(std::string(FUZZ_CORPUS) + "/" + parser)) {
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    inputs.push_back(content.str());
  }
  std::sort(inputs.begin(), inputs.end()); // folders have no order
  return inputs;
}

void mutate(std::string &input, std::mt19937_64 &random) {
  const std::size_t at = random() % (input.size() + 1);
  switch (random() % 5) {
  case 0:
    input.insert(at, 1, static_cast<char>(random()));
    break;
  case 1:
    input.erase(at, random() % 8);
    break;
  case 2:
    input.resize(at);
    break;
  case 3:
    input.insert(at, input.substr(random() % (input.size() + 1), random() % 32));
    break;
  default:
    if (at < input.size())
      input[at] = random() % 2 == 0 ? static_cast<char>(input[at] ^ (1 << random() % 8))
                                    : kSpecialBytes[random() % sizeof kSpecialBytes];
  }
}

class Corpus : public testing::TestWithParam<Parser> {};

TEST_P(Corpus, IsTakenOrRefused) {
  std::mt19937_64 random(1);
  const std::vector<std::string> inputs = kept(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  for (const std::string &input : inputs)
    give(GetParam(), input);
  for (int i = 0; i < kMutations; i++) {
    std::string input = inputs[random() % inputs.size()];
    for (auto times = random() % 8; times > 0; times--)
      mutate(input, random);
    give(GetParam(), input);
  }
}

INSTANTIATE_TEST_SUITE_P(Parsers, Corpus, testing::ValuesIn(parsers().begin(), parsers().end()),
                         [](const auto &each) { return std::string(each.param.name); });

} // namespace
} // namespace fuzz
