// SPDX-License-Identifier: Apache-2.0
// What peers say to each other before the first byte of the job: who one is, and what the other thinks of it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace replay {

// 64-bit FNV-1a hash.
std::uint64_t fnv1a(std::string_view text);

// Both messages are text, padded with zeros to one size.
using Message = std::array<char, 256>;

Message to_message(const std::string &text);
std::string to_text(const Message &message);

struct Hello {
  std::string job;
  unsigned rank = 0;
  unsigned connection = 0;
  std::uint64_t fingerprint = 0; // of the job as it was told
  std::string secret = {};       // of the trial

  std::string text() const;
};

// Whose hello is welcome.
struct Expected {
  std::string job;
  std::set<unsigned> ranks;
  unsigned connections = 1;
  std::uint64_t fingerprint = 0;
  std::string secret = {};
};

// Whether a hello is from somebody who knows the trial's secret. Nobody else is told anything.
bool knows_secret(const std::string &text, const Expected &expected);

// What is wrong with a hello, or "" if it is from one of the expected, given alike and the secret known. On success
// `hello` is set.
std::string judge_hello(const std::string &text, const Expected &expected, Hello &hello);

// The answer to a hello that is welcome.
constexpr std::string_view kWelcome = "welcome";

} // namespace replay
