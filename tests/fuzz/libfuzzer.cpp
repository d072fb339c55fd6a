// SPDX-License-Identifier: Apache-2.0
// The parser that FUZZ_PARSER names, as libFuzzer calls it.
#include "tests/fuzz/parsers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace {

const fuzz::Parser &chosen() {
  const char *name = std::getenv("FUZZ_PARSER");
  const auto all = fuzz::parsers();
  const auto found = std::find_if(
      all.begin(), all.end(), [name](const fuzz::Parser &each) { return name && std::string_view(name) == each.name; });
  if (found != all.end())
    return *found;
  std::cerr << "FUZZ_PARSER: expected one of";
  for (const fuzz::Parser &each : all)
    std::cerr << ' ' << each.name;
  std::cerr << '\n';
  std::exit(2);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static const fuzz::Parser &parser = chosen();
  fuzz::give(parser, std::string(reinterpret_cast<const char *>(data), size));
  return 0;
}
