// SPDX-License-Identifier: Apache-2.0
// Protocols that are not decoded, and their names.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace decoder {

// The header field that holds a protocol's number; LLC and fragments have none.
enum class Layer : std::uint8_t {
  none,
  link_type,
  llc,
  ethertype,
  ip_protocol,
  gre_type,
  udp_port,
  roce_opcode,
  fragment
};

struct Protocol {
  Layer layer = Layer::none;
  std::uint32_t number = 0;

  auto operator<=>(const Protocol &) const = default;
};

// Returns true if packets to this UDP port carry other packets.
bool is_tunnel_port(std::uint16_t port);

// Returns the name and the number, for example "ERSPAN (GRE type 0x88be)".
std::string describe(Protocol protocol);

std::string in_hexadecimal(std::uint32_t number);

} // namespace decoder
