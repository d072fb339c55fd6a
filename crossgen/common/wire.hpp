// SPDX-License-Identifier: Apache-2.0
// What a sender and a sink say to each other on each connection:
//
//   sender: hello (magic, secret)        sink: welcome, or it closes
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
constexpr std::size_t kHelloBytes = kMagicBytes + native::kMostSecretBytes;

using Welcome = std::array<char, 8>;
using FlowHeader = std::array<char, 16>;
using Acknowledgement = std::array<char, 8>;

constexpr Welcome kWelcome = {'w', 'e', 'l', 'c', 'o', 'm', 'e', '\n'};

// kHelloBytes.
std::string make_hello(const std::string &secret);

FlowHeader make_flow_header(std::uint64_t number, std::uint64_t bytes);

// A message of fixed size on its way in.
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

// The sink's place in a connection that was welcomed: in a flow's header, or in its body.
class FlowReceiver {
public:
  // Where header bytes go; empty while a body is coming.
  std::span<char> header_room() { return body_left_ > 0 ? std::span<char>() : header_.room(); }
  std::uint64_t body_left() const { return body_left_; }
  bool between_flows() { return body_left_ == 0 && header_.room().size() == sizeof(FlowHeader); }

  // Throws native::Failure for a header that no sender would send.
  void took_header(std::size_t bytes);

  // Whether that ended the flow.
  bool took_body(std::uint64_t bytes);

  Acknowledgement acknowledgement() const;

private:
  Incoming<FlowHeader> header_;
  std::uint64_t body_left_ = 0;
};

} // namespace crossgen
