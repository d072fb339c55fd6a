// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstring>

namespace crossgen {

static_assert(std::endian::native == std::endian::little, "files and messages are little-endian, and so are all hosts");

template <typename Number> Number get(const char *from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <typename Number> void put(char *to, Number number) { std::memcpy(to, &number, sizeof number); }

} // namespace crossgen
