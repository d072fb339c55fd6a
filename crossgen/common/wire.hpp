// SPDX-License-Identifier: Apache-2.0
// The protocol between a sender and a sink on each connection:
//
//   sender: hello (magic, secret)        sink: `welcome`, or it closes
//   sender: header (number, bytes), then that many bytes; sink: the flow's number, once it has taken them all
//
// and then the next flow.
#pragma once

#include "crossgen/common/load_file.hpp"
#include "native/control/secret.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace crossgen {

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHelloBytes = kMagicBytes + native::kMaxSecretBytes;

using Acceptance = std::array<char, 8>;
using FlowHeader = std::array<char, 16>;
using Acknowledgement = std::array<char, 8>;

constexpr Acceptance kAcceptance = {'w', 'e', 'l', 'c', 'o', 'm', 'e', '\n'};

// Returns a hello of kHelloBytes with this secret.
std::string make_hello(const std::string &secret);

// Returns the header of a flow with this number and size.
FlowHeader make_flow_header(std::uint64_t number, std::uint64_t bytes);

// A message of fixed size that arrives in parts.
template <typename Message> class Incoming {
public:
  std::span<char> room() { return std::span(message_).subspan(have_); }
  void took(std::size_t bytes) { have_ += bytes; }
  bool whole() const { return have_ == message_.size(); }
  const Message &message() const { return message_; }
  void restart() { have_ = 0; }

private:
  Message message_{};
  std::size_t have_ = 0;
};

// The state of the sink's end of an accepted connection: within a flow's header, or within its body.
class FlowReceiver {
public:
  // Returns the buffer for header bytes; empty while a body arrives.
  std::span<char> header_room() { return body_left_ > 0 ? std::span<char>() : header_.room(); }
  std::uint64_t body_left() const { return body_left_; }
  bool between_flows() { return body_left_ == 0 && header_.room().size() == sizeof(FlowHeader); }

  // Accounts for received header bytes. Throws native::Failure for an invalid header.
  void took_header(std::size_t bytes);

  // Accounts for received body bytes. Returns true if they end the flow.
  bool took_body(std::uint64_t bytes);

  Acknowledgement acknowledgement() const;

private:
  Incoming<FlowHeader> header_;
  std::uint64_t body_left_ = 0;
};

} // namespace crossgen
