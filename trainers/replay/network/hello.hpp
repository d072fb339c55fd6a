// SPDX-License-Identifier: Apache-2.0
// The messages of peers before the job's first byte: one introduces itself, and the other accepts or refuses it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace replay {

// Returns the 64-bit FNV-1a hash of a text.
std::uint64_t fnv1a(std::string_view text);

// Hello and answer are text, padded with zeros to a fixed size.
using Message = std::array<char, 256>;

Message to_message(const std::string &text);
std::string to_text(const Message &message);

struct Hello {
  std::string job;
  unsigned rank = 0;
  unsigned connection = 0;
  std::uint64_t fingerprint = 0; // hash of the job's description
  std::string secret = {};       // of the trial

  std::string text() const;
};

// The peers whose hello is accepted.
struct Expected {
  std::string job;
  std::map<unsigned, std::set<unsigned>> connections; // their numbers, by rank
  std::uint64_t fingerprint = 0;
  std::string secret = {};
};

// Returns true if a hello has the trial's secret. Other connections get no answer.
bool has_secret(const std::string &text, const Expected &expected);

// Returns why a hello is refused, or "" if it comes from an expected peer with the same job and secret. It then sets
// `hello`.
std::string judge_hello(const std::string &text, const Expected &expected, Hello &hello);

// The answer to an accepted hello.
constexpr std::string_view kAcceptance = "welcome";

} // namespace replay
