// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where the compiler has none: `fuzz SECONDS [SEED]` mutates valid inputs.
#include "crossgen/load_file.hpp"
#include "crossgen/wire.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace {

std::string load_file() {
  std::ostringstream out;
  crossgen::LoadWriter writer(out, {1000, {"a", "b"}, {"c"}, {{"kind", "burst"}}});
  writer.add({1, 2, 0, 0});
  writer.add({3, 4, 1, 0});
  writer.finish();
  return out.str();
}

std::string flow() {
  const crossgen::FlowHeader header = crossgen::make_flow_header(7, 1'000'000);
  return '\x10' + std::string(header.begin(), header.end()) + "\x14\x15\x16";
}

std::vector<std::string> seeds() {
  return {'\0' + load_file(),
          "\1"
          "0 0\n10 .5\n1e3 1 # end\n",
          '\2' + flow() + flow(), "\3GET /metrics HTTP/1.1\r\n\r\n"};
}

void mutate(std::string &input, std::mt19937_64 &random) {
  static const char kTelling[] = {'\0', '\xff', '\x7f', '\x80', '\n', ' ', '"', '{', '}', '-', '9', 'e', '.'};
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
      input[at] =
          random() % 2 == 0 ? static_cast<char>(input[at] ^ (1 << random() % 8)) : kTelling[random() % sizeof kTelling];
  }
}

} // namespace

int main(int argc, char **argv) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(argc > 1 ? std::atof(argv[1]) : 1);
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const std::vector<std::string> inputs = seeds();
  std::uint64_t runs = 0;
  for (; Clock::now() < end; runs++) {
    std::string input = inputs[random() % inputs.size()];
    for (std::uint64_t i = random() % 8; i > 0; i--)
      mutate(input, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
  }
  std::cout << runs << " inputs\n";
}
