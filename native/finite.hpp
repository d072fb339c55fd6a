// SPDX-License-Identifier: Apache-2.0
// A check for numbers on command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace native {

// CLI::Range lets "nan" pass.
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

} // namespace native
