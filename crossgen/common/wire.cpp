// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/wire.hpp"

#include "crossgen/common/little_endian.hpp"
#include "native/errors.hpp"

#include <algorithm>

namespace crossgen {
namespace {

constexpr std::string_view kMagic = "rbcross1";
static_assert(kMagic.size() == kMagicBytes);

} // namespace

std::string make_hello(const std::string &secret) {
  std::string hello(kMagic);
  hello += secret;
  hello.resize(kHelloBytes);
  return hello;
}

FlowHeader make_flow_header(std::uint64_t number, std::uint64_t bytes) {
  FlowHeader header{};
  put(header.data(), number);
  put(header.data() + 8, bytes);
  return header;
}

void FlowReceiver::took_header(std::size_t bytes) {
  header_.took(bytes);
  if (!header_.whole())
    return;
  const auto size = get<std::uint64_t>(header_.message().data() + 8);
  if (size == 0 || size > kMaxFlowBytes)
    throw native::Failure("expected a flow of 1 to 2^48 bytes, found " + std::to_string(size));
  body_left_ = size;
}

bool FlowReceiver::took_body(std::uint64_t bytes) {
  body_left_ -= bytes;
  if (body_left_ > 0)
    return false;
  header_.restart();
  return true;
}

Acknowledgement FlowReceiver::acknowledgement() const {
  Acknowledgement number{};
  std::copy_n(header_.message().begin(), number.size(), number.begin());
  return number;
}

} // namespace crossgen
