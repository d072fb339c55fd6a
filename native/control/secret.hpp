// SPDX-License-Identifier: Apache-2.0
// A secret that the programs of one trial share. It comes on standard input, because other users can read command lines
// and files. It crosses the network in plain text, so it keeps out strangers and other runs, but not eavesdroppers.
#pragma once

#include <string>
#include <string_view>

namespace native {

constexpr std::size_t kMinSecretBytes = 8;
constexpr std::size_t kMaxSecretBytes = 64;

// Returns the secret in the line `secret TEXT`. Throws Failure for any other line, without repeating the line.
std::string parse_secret(std::string_view line);

// Returns true if both texts are equal, in a time that does not depend on where they differ.
bool same_bytes(std::string_view one, std::string_view other);

} // namespace native
