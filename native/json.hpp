// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/errors.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace native {

// Returns text parsed as JSON, which is_discarded() if the text is not JSON. Throws Failure if it nests deeper than any
// of our documents, because the library copies and prints by recursion, and would overflow the stack.
template <typename Json> Json parse_json(const std::string &text) {
  constexpr int kMaxDepth = 64;
  const auto look = [](int depth, typename Json::parse_event_t, Json &) {
    if (depth > kMaxDepth)
      throw Failure("expected JSON of at most " + std::to_string(kMaxDepth) + " levels, found more");
    return true;
  };
  return Json::parse(text, look, false);
}

} // namespace native
