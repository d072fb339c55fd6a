// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/network/hello.hpp"

#include "native/control/secret.hpp"

#include <algorithm>
#include <sstream>

namespace replay {
namespace {

constexpr const char *kMagic = "roundabout-replay-3";

std::string who(const std::string &job, const std::set<unsigned> &ranks) {
  std::string text = "job " + job + " rank ";
  for (const unsigned rank : ranks)
    text += (rank == *ranks.begin() ? "" : " or ") + std::to_string(rank);
  return text;
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

bool knows_secret(const std::string &text, const Expected &expected) {
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
  if (said.job != expected.job || !expected.ranks.contains(said.rank))
    return "expected " + who(expected.job, expected.ranks) + ", found " + who(said.job, {said.rank});
  if (said.fingerprint != expected.fingerprint)
    return who(said.job, {said.rank}) + " was told another job (workers, connections, phases, iterations, seed, ...)";
  if (said.connection >= expected.connections)
    return "expected a connection below " + std::to_string(expected.connections) + ", found " +
           std::to_string(said.connection);
  hello = said;
  return "";
}

} // namespace replay
