// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/protocols.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <string_view>

namespace decoder {
namespace {

// Sources: IANA's registries of EtherTypes, protocol numbers and ports; for ERSPAN draft-foschiano-erspan.
const std::map<Protocol, std::string_view> &names() {
  static const std::map<Protocol, std::string_view> kNames = {
      {{Layer::ethertype, 0x0806}, "ARP"},
      {{Layer::ethertype, 0x22f3}, "TRILL"},
      {{Layer::ethertype, 0x8035}, "RARP"},
      {{Layer::ethertype, 0x8808}, "MAC control"},
      {{Layer::ethertype, 0x8809}, "LACP or another slow protocol"},
      {{Layer::ethertype, 0x8847}, "MPLS"},
      {{Layer::ethertype, 0x8848}, "MPLS with upstream labels"},
      {{Layer::ethertype, 0x8863}, "PPPoE discovery"},
      {{Layer::ethertype, 0x8864}, "PPPoE session"},
      {{Layer::ethertype, 0x888e}, "802.1X"},
      {{Layer::ethertype, 0x88cc}, "LLDP"},
      {{Layer::ethertype, 0x88e5}, "MACsec"},
      {{Layer::ethertype, 0x88e7}, "provider backbone bridging"},
      {{Layer::ethertype, 0x88f7}, "PTP"},
      {{Layer::ethertype, 0x8906}, "FCoE"},
      {{Layer::ethertype, 0x8914}, "FCoE initialization"},
      {{Layer::ethertype, 0x894f}, "NSH"},
      {{Layer::ip_protocol, 1}, "ICMP"},
      {{Layer::ip_protocol, 2}, "IGMP"},
      {{Layer::ip_protocol, 4}, "IPv4 in IP"},
      {{Layer::ip_protocol, 41}, "IPv6 in IP"},
      {{Layer::ip_protocol, 47}, "GRE"},
      {{Layer::ip_protocol, 50}, "IPsec ESP"},
      {{Layer::ip_protocol, 51}, "IPsec AH"},
      {{Layer::ip_protocol, 58}, "ICMPv6"},
      {{Layer::ip_protocol, 59}, "nothing after IPv6's headers"},
      {{Layer::ip_protocol, 89}, "OSPF"},
      {{Layer::ip_protocol, 97}, "Ethernet in IP"},
      {{Layer::ip_protocol, 103}, "PIM"},
      {{Layer::ip_protocol, 112}, "VRRP"},
      {{Layer::ip_protocol, 115}, "L2TP"},
      {{Layer::ip_protocol, 132}, "SCTP"},
      {{Layer::ip_protocol, 136}, "UDP-Lite"},
      {{Layer::ip_protocol, 137}, "MPLS in IP"},
      {{Layer::gre_type, 0x0800}, "IPv4 in GRE"},
      {{Layer::gre_type, 0x22eb}, "ERSPAN III"},
      {{Layer::gre_type, 0x6558}, "Ethernet in GRE"},
      {{Layer::gre_type, 0x86dd}, "IPv6 in GRE"},
      {{Layer::gre_type, 0x8847}, "MPLS in GRE"},
      {{Layer::gre_type, 0x88be}, "ERSPAN"},
      {{Layer::udp_port, 1701}, "L2TP"},
      {{Layer::udp_port, 2152}, "GTP-U"},
      {{Layer::udp_port, 4500}, "IPsec ESP in UDP"},
      {{Layer::udp_port, 4754}, "GRE in UDP"},
      {{Layer::udp_port, 4789}, "VXLAN in VXLAN, or without a network identifier"},
      {{Layer::udp_port, 4790}, "VXLAN-GPE"},
      {{Layer::udp_port, 6081}, "Geneve"},
      {{Layer::udp_port, 6635}, "MPLS in UDP"},
  };
  return kNames;
}

std::string number_of(Protocol protocol) {
  switch (protocol.layer) {
  case Layer::link_type:
    return "link type " + std::to_string(protocol.number);
  case Layer::ethertype:
    return "EtherType " + in_hexadecimal(protocol.number);
  case Layer::ip_protocol:
    return "IP protocol " + std::to_string(protocol.number);
  case Layer::gre_type:
    return "GRE type " + in_hexadecimal(protocol.number);
  case Layer::udp_port:
    return "UDP port " + std::to_string(protocol.number);
  case Layer::roce_opcode:
    return "RoCE opcode " + in_hexadecimal(protocol.number);
  case Layer::llc:
    return "IEEE 802.3 with LLC";
  case Layer::fragment:
    return "IP fragments after the first";
  case Layer::none:
    break;
  }
  return "other protocols";
}

} // namespace

std::string in_hexadecimal(std::uint32_t number) {
  std::array<char, 11> text{};
  std::snprintf(text.data(), text.size(), "0x%x", number);
  return text.data();
}

bool is_tunnel_port(std::uint16_t port) { return names().contains({Layer::udp_port, port}); }

std::string describe(Protocol protocol) {
  const auto found = names().find(protocol);
  return found == names().end() ? number_of(protocol) : std::string(found->second) + " (" + number_of(protocol) + ")";
}

} // namespace decoder
