// SPDX-License-Identifier: Apache-2.0
// What ring neighbours say to each other before the first byte of the job: who one is, and what the other thinks of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace replay {

constexpr std::size_t kLongestJobName = 63;

// 64-bit FNV-1a hash.
std::uint64_t fnv1a(std::string_view text);

// Both messages are text, padded with zeros to one size.
using Message = std::array<char, 256>;

Message to_message(const std::string &text);
std::string to_text(const Message &message);

struct Hello {
  std::string job;
  unsigned rank = 0;
  unsigned flow = 0;
  std::uint64_t fingerprint = 0; // of the job's options

  std::string text() const;
};

// What is wrong with a hello, or "" if it is from the expected job and rank, given alike, and a flow below `flows`.
// On success `flow` is set.
std::string judge_hello(const std::string &text, const Hello &expected, unsigned flows, unsigned &flow);

// The answer to a hello that is welcome.
constexpr std::string_view kWelcome = "welcome";

} // namespace replay
