// SPDX-License-Identifier: Apache-2.0
// Checks for numbers on command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace native {

// Returns a validator of finite numbers from `least` to `most`, because CLI::Range accepts "nan".
inline CLI::Validator finite(double least, double most) {
  const auto complain = [least, most](const std::string &text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
      return "";
    return "expected a number from " + CLI::detail::to_string(least) + " to " + CLI::detail::to_string(most) +
           ", found " + text;
  };
  return {complain, "NUMBER"};
}

// Returns a validator of whole numbers of 64 bits, because CLI11 replaces larger numbers by the largest one.
inline CLI::Validator whole_64_bits() {
  const auto complain = [](const std::string &text) -> std::string {
    std::uint64_t value = 0;
    const char *end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    return parsed.ec == std::errc{} && parsed.ptr == end
               ? ""
               : "expected a whole number from 0 to 18446744073709551615, found " + text;
  };
  return {complain, "NUMBER"};
}

} // namespace native
