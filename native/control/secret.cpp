// SPDX-License-Identifier: Apache-2.0
#include "native/control/secret.hpp"

#include "native/errors.hpp"

#include <algorithm>

namespace native {

std::string parse_secret(std::string_view line) {
  constexpr std::string_view kWord = "secret ";
  if (!line.starts_with(kWord))
    throw Failure("expected `secret TEXT` as the first line on standard input, found something else");
  line.remove_prefix(kWord.size());
  const bool is_printable = std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (line.size() < kMinSecretBytes || line.size() > kMaxSecretBytes || !is_printable)
    throw Failure("expected a secret of 8 to 64 characters without blanks on standard input, found " +
                  std::to_string(line.size()) + " characters");
  return std::string(line);
}

bool same_bytes(std::string_view one, std::string_view other) {
  if (one.size() != other.size())
    return false;
  volatile unsigned char difference = 0; // so that the compiler cannot leave the loop early
  for (std::size_t i = 0; i < one.size(); i++)
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  return difference == 0;
}

} // namespace native
