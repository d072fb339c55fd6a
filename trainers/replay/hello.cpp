// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/hello.hpp"

#include <algorithm>
#include <sstream>

namespace replay {
namespace {

constexpr const char *kMagic = "roundabout-replay-1";

std::string who(const Hello &hello) { return "job " + hello.job + " rank " + std::to_string(hello.rank); }

} // namespace

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Message to_message(const std::string &text) {
  Message message{};
  std::copy_n(text.begin(), std::min(text.size(), message.size() - 1), message.begin());
  return message;
}

std::string to_text(const Message &message) {
  return {message.begin(), std::find(message.begin(), message.end(), '\0')};
}

std::string Hello::text() const {
  std::ostringstream out;
  out << kMagic << ' ' << job << ' ' << rank << ' ' << flow << ' ' << fingerprint;
  return out.str();
}

std::string judge_hello(const std::string &text, const Hello &expected, unsigned flows, unsigned &flow) {
  std::istringstream in(text);
  std::string magic;
  Hello hello;
  if (!(in >> magic >> hello.job >> hello.rank >> hello.flow >> hello.fingerprint) || magic != kMagic)
    return "expected a replay worker's hello, found something else";
  if (hello.job != expected.job || hello.rank != expected.rank)
    return "expected " + who(expected) + ", found " + who(hello);
  if (hello.fingerprint != expected.fingerprint)
    return who(hello) + " was given other options (addresses, flows, profile, iterations, seed, jitter or offset)";
  if (hello.flow >= flows)
    return "expected a flow below " + std::to_string(flows) + ", found " + std::to_string(hello.flow);
  flow = hello.flow;
  return "";
}

} // namespace replay
