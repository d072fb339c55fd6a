// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/network/hello.hpp"

#include "native/control/secret.hpp"

#include <algorithm>
#include <sstream>

namespace replay {
namespace {

constexpr const char *kMagic = "roundabout-replay-3";

std::string any_of(const std::set<unsigned> &numbers) {
  std::string text;
  for (const unsigned number : numbers)
    text += (text.empty() ? "" : " or ") + std::to_string(number);
  return text;
}

std::string who(const std::string &job, const std::set<unsigned> &ranks) {
  return "job " + job + " rank " + any_of(ranks);
}

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
  out << kMagic << ' ' << secret << ' ' << job << ' ' << rank << ' ' << connection << ' ' << fingerprint;
  return out.str();
}

bool has_secret(const std::string &text, const Expected &expected) {
  std::istringstream in(text);
  std::string magic, secret;
  return in >> magic >> secret && magic == kMagic && native::same_bytes(secret, expected.secret);
}

std::string judge_hello(const std::string &text, const Expected &expected, Hello &hello) {
  std::istringstream in(text);
  std::string magic;
  Hello said;
  if (!(in >> magic >> said.secret >> said.job >> said.rank >> said.connection >> said.fingerprint))
    return "expected a replay worker's hello, found something else";
  const auto peer = expected.connections.find(said.rank);
  if (said.job != expected.job || peer == expected.connections.end()) {
    std::set<unsigned> ranks;
    for (const auto &[rank, numbers] : expected.connections)
      ranks.insert(rank);
    return "expected " + who(expected.job, ranks) + ", found " + who(said.job, {said.rank});
  }
  if (said.fingerprint != expected.fingerprint)
    return who(said.job, {said.rank}) + " received another job (workers, connections, phases, iterations, seed, ...)";
  if (!peer->second.contains(said.connection))
    return "expected connection " + any_of(peer->second) + ", found " + std::to_string(said.connection);
  hello = said;
  return "";
}

} // namespace replay
