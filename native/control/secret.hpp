// SPDX-License-Identifier: Apache-2.0
// A secret that programs of one trial share. It comes on standard input: what is in a command line or a file, others
// can read. It goes over the network as it is: it keeps strangers and stray runs out, not eavesdroppers.
#pragma once

#include <string>
#include <string_view>

namespace native {

constexpr std::size_t kLeastSecretBytes = 8;
constexpr std::size_t kMostSecretBytes = 64;

// The secret in the line `secret TEXT`. Throws Failure, which does not repeat the line, for any other one.
std::string parse_secret(std::string_view line);

// Takes the same time wherever they differ.
bool same_bytes(std::string_view one, std::string_view other);

} // namespace native
