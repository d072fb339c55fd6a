// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/errors.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace native {

// Text as JSON; discarded where it is none. Throws Failure for what nests deeper than anything of ours: the library
// copies and prints by recursion, and would run out of stack.
template <typename Json> Json parse_json(const std::string &text) {
  constexpr int kMostDepth = 64;
  const auto look = [](int depth, typename Json::parse_event_t, Json &) {
    if (depth > kMostDepth)
      throw Failure("expected JSON of at most " + std::to_string(kMostDepth) + " levels, found more");
    return true;
  };
  return Json::parse(text, look, false);
}

} // namespace native
