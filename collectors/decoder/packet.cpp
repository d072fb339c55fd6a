// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/packet.hpp"

#include <algorithm>
#include <cstring>

namespace decoder {
namespace {

// Link types (https://www.tcpdump.org/linktypes.html).
enum LinkType : std::uint32_t {
  kLoopback = 0, // of BSD and macOS
  kEthernet = 1,
  kRawOfOldFiles = 12,
  kRawOfOpenBsd = 14,
  kRaw = 101,
  kLoopbackOfOpenBsd = 108,
  kLinuxCooked = 113,
  kRawIpv4 = 228,
  kRawIpv6 = 229,
  kLinuxCooked2 = 276,
};

constexpr std::uint16_t kIpv4 = 0x0800, kIpv6 = 0x86dd, kMacControl = 0x8808, kRoceV1 = 0x8915;
constexpr std::uint16_t kSmallestEtherType = 0x0600; // smaller ones are the lengths of IEEE 802.3 frames
constexpr std::uint8_t kHopByHop = 0, kTcp = 6, kUdp = 17, kGre = 47;
constexpr std::uint16_t kRoceV2Port = 4791;
constexpr std::uint16_t kVxlanPort = 4789, kVxlanPortOfOldLinux = 8472;
constexpr std::size_t kEthernetBytes = 14, kEtherTypeAt = 12;
constexpr std::size_t kBthBytes = 12, kIcrcBytes = 4;

// The rest of a packet: `captured` bytes were captured, `length` bytes were on the wire.
class Bytes {
public:
  Bytes(const std::uint8_t *data, std::size_t captured, std::size_t length)
      : data_(data), captured_(std::min(captured, length)), length_(length) {}

  bool holds(std::size_t count) const { return captured_ >= count; }
  std::size_t length() const { return length_; }
  std::uint8_t u8(std::size_t at) const { return data_[at]; }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(data_[at] << 8 | data_[at + 1]); }
  std::uint32_t u24(std::size_t at) const { return static_cast<std::uint32_t>(u16(at) << 8 | data_[at + 2]); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(u16(at)) << 16 | u16(at + 2); }
  const std::uint8_t *at(std::size_t offset) const { return data_ + offset; }

  // All after the first `count` bytes, which are on the wire.
  Bytes after(std::size_t count) const {
    const std::size_t skipped = std::min(count, captured_);
    return {data_ + skipped, captured_ - skipped, length_ - count};
  }
  Bytes first(std::size_t count) const { return {data_, captured_, std::min(count, length_)}; }

private:
  const std::uint8_t *data_;
  std::size_t captured_;
  std::size_t length_;
};

void set_present(Record &record, std::uint32_t fields) { record.present |= fields; }

// Ends decoding at a protocol that is not decoded.
void stop_at(Packet &packet, Undecoded why, Layer layer, std::uint32_t number = 0) {
  packet.record.undecoded = why;
  packet.undecoded = {layer, number};
}

void parse_after_header(const Bytes &frame, std::size_t header_bytes, std::size_t type_at, Packet &packet);

// Returns why a header of `needed` bytes is incomplete: the capture cut it off, or the packet itself is too short.
Undecoded cut(const Bytes &rest, std::size_t needed) {
  return rest.length() < needed ? Undecoded::malformed : Undecoded::truncated;
}

// Returns the number of bytes between an InfiniBand BTH and the data, by opcode; -1 for unsupported transports.
// InfiniBand specification, volume 1, section 9.2 (table of packet opcodes).
std::int32_t extended_header_bytes(std::uint8_t opcode) {
  static constexpr std::array<std::int8_t, 24> kConnected = {0,  0, 0, 4, 0, 4, 16, 0,  0,  4,  16, 20,
                                                             16, 4, 0, 4, 4, 4, 12, 28, 28, -1, 4,  4};
  const std::uint8_t transport = opcode >> 5;
  const std::uint8_t operation = opcode & 0x1f;
  const bool datagram = transport == 3;
  if (datagram)
    return operation == 4 ? 8 : operation == 5 ? 12 : -1;
  const bool extended = transport == 5; // XRC: requests carry an XRCETH
  if ((transport > 1 && !extended) || operation >= kConnected.size() || kConnected[operation] < 0)
    return -1;
  const bool response = operation >= 13 && operation <= 18;
  return kConnected[operation] + (extended && !response ? 4 : 0);
}

void parse_roce(const Bytes &rest, Packet &packet) {
  Record &record = packet.record;
  record.present &= ~std::uint32_t{kPayload}; // that of UDP is not the data
  if (!rest.holds(kBthBytes)) {
    record.undecoded = cut(rest, kBthBytes);
    return;
  }
  record.opcode = rest.u8(0);
  record.destination_qp = rest.u24(5);
  record.psn = rest.u24(9);
  set_present(record, kOpcode | kQueuePair | kPsn);
  if (record.opcode == 0x81) { // a CNP is padded, and carries no data
    record.payload_bytes = 0;
    set_present(record, kPayload);
    return;
  }
  const std::int32_t extended = extended_header_bytes(record.opcode);
  if (extended < 0) {
    stop_at(packet, Undecoded::protocol, Layer::roce_opcode, record.opcode);
    return;
  }
  const std::size_t padding = rest.u8(1) >> 4 & 3;
  const std::size_t around = kBthBytes + static_cast<std::size_t>(extended) + padding + kIcrcBytes;
  record.payload_bytes = rest.length() > around ? static_cast<std::uint32_t>(rest.length() - around) : 0;
  set_present(record, kPayload);
}

bool parse_ports(const Bytes &rest, Record &record) {
  if (!rest.holds(4)) {
    record.undecoded = cut(rest, 4);
    return false;
  }
  record.source_port = rest.u16(0);
  record.destination_port = rest.u16(2);
  set_present(record, kPorts);
  return true;
}

// Parses the Ethernet frame in a VXLAN packet. The record then describes that frame; of the outer headers it keeps the
// VLAN tags, DSCP and ECN, which determine the packet's treatment by the underlay's switches.
void parse_vxlan(const Bytes &rest, Packet &packet) {
  constexpr std::size_t kHeader = 8;
  constexpr std::uint8_t kHasVni = 0x08;
  Record &record = packet.record;
  if (!rest.holds(kHeader)) {
    record.undecoded = cut(rest, kHeader);
    return;
  }
  if ((rest.u8(0) & kHasVni) == 0 || record.has(kVni)) {
    stop_at(packet, Undecoded::protocol, Layer::udp_port, record.destination_port);
    return;
  }
  record.present &= kTime | kVlan | kInnerVlan | kTrafficClass;
  if (record.has(kTrafficClass)) {
    record.outer_dscp = record.dscp;
    record.outer_ecn = record.ecn;
    record.present = (record.present & ~std::uint32_t{kTrafficClass}) | kOuterTrafficClass;
  }
  record.vxlan_vni = rest.u24(4);
  set_present(record, kVni);
  parse_after_header(rest.after(kHeader), kEthernetBytes, kEtherTypeAt, packet);
}

void parse_udp(const Bytes &rest, Packet &packet) {
  Record &record = packet.record;
  if (!parse_ports(rest, record))
    return;
  if (!rest.holds(8)) {
    record.undecoded = cut(rest, 8);
    return;
  }
  const bool jumbo = rest.u16(4) == 0 && record.ip_version == 6;
  const std::size_t length = jumbo ? rest.length() : rest.u16(4);
  if (length < 8) {
    record.undecoded = Undecoded::malformed;
    return;
  }
  const Bytes payload = rest.first(length).after(8);
  record.payload_bytes = static_cast<std::uint32_t>(payload.length());
  set_present(record, kPayload);
  if (record.destination_port == kRoceV2Port)
    parse_roce(payload, packet);
  else if (record.destination_port == kVxlanPort || record.destination_port == kVxlanPortOfOldLinux)
    parse_vxlan(payload, packet);
  else if (is_tunnel_port(record.destination_port))
    stop_at(packet, Undecoded::protocol, Layer::udp_port, record.destination_port);
}

void parse_tcp(const Bytes &rest, Record &record) {
  if (!parse_ports(rest, record))
    return;
  if (!rest.holds(16)) {
    record.undecoded = cut(rest, 16);
    return;
  }
  record.tcp_seq = rest.u32(4);
  set_present(record, kTcpSeq);
  const std::size_t header = static_cast<std::size_t>(rest.u8(12) >> 4) * 4;
  if (header < 20) {
    record.undecoded = Undecoded::malformed;
    return;
  }
  record.tcp_ack = rest.u32(8);
  record.tcp_flags = rest.u16(12) & 0x0fff;
  set_present(record, kTcpAck | kTcpFlags);
  if (header > rest.length()) {
    record.undecoded = Undecoded::malformed;
    return;
  }
  record.payload_bytes = static_cast<std::uint32_t>(rest.length() - header);
  set_present(record, kPayload);
}

void parse_transport(const Bytes &rest, Packet &packet) {
  Record &record = packet.record;
  if (record.has(kFragment) && record.fragment_offset != 0)
    stop_at(packet, Undecoded::fragment, Layer::fragment); // the ports are in the first fragment
  else if (record.protocol == kTcp)
    parse_tcp(rest, record);
  else if (record.protocol == kUdp)
    parse_udp(rest, packet);
  else if (record.protocol == kGre && rest.holds(4))
    stop_at(packet, Undecoded::protocol, Layer::gre_type, rest.u16(2));
  else
    stop_at(packet, Undecoded::protocol, Layer::ip_protocol, record.protocol);
}

void set_traffic_class(Record &record, std::uint8_t value) {
  record.dscp = value >> 2;
  record.ecn = value & 3;
  set_present(record, kTrafficClass);
}

// Takes the address of `size` bytes at `at` as the packet's `which`, kSource or kDestination, if it is there.
void set_address(const Bytes &rest, std::size_t at, std::size_t size, Present which, Packet &packet) {
  if (!rest.holds(at + size))
    return;
  Address &address = which == kSource ? packet.source : packet.destination;
  address.version = packet.record.ip_version;
  std::memcpy(address.bytes.data(), rest.at(at), size);
  set_present(packet.record, which);
}

bool parse_version(const Bytes &rest, std::uint8_t expected, Record &record) {
  if (!rest.holds(1)) {
    record.undecoded = cut(rest, 1);
    return false;
  }
  if (rest.u8(0) >> 4 != expected) {
    record.undecoded = Undecoded::malformed;
    return false;
  }
  record.ip_version = expected;
  set_present(record, kVersion);
  return true;
}

void parse_ipv4(const Bytes &rest, Packet &packet) {
  Record &record = packet.record;
  if (!parse_version(rest, 4, record))
    return;
  const std::size_t header = static_cast<std::size_t>(rest.u8(0) & 15) * 4;
  if (header < 20) {
    record.undecoded = Undecoded::malformed;
    return;
  }
  if (rest.holds(2))
    set_traffic_class(record, rest.u8(1));
  const std::uint16_t fragment = rest.holds(8) ? rest.u16(6) & 0x3fff : 0;
  if (fragment != 0) {
    record.fragment_offset = static_cast<std::uint16_t>((fragment & 0x1fff) * 8);
    set_present(record, kFragment);
  }
  if (rest.holds(10)) {
    record.protocol = rest.u8(9);
    set_present(record, kProtocol);
  }
  set_address(rest, 12, 4, kSource, packet);
  set_address(rest, 16, 4, kDestination, packet);
  const std::size_t total = rest.holds(4) ? rest.u16(2) : 0; // 0: a segment that the NIC has still to cut, too
  if ((total != 0 && total < header) || header > rest.length()) {
    record.undecoded = Undecoded::malformed;
    return;
  }
  if (!rest.holds(header)) {
    record.undecoded = Undecoded::truncated;
    return;
  }
  parse_transport((total != 0 ? rest.first(total) : rest).after(header), packet);
}

bool is_extension(std::uint8_t next_header) {
  constexpr std::array<std::uint8_t, 7> kExtensions = {0, 43, 51, 60, 135, 139, 140};
  return std::find(kExtensions.begin(), kExtensions.end(), next_header) != kExtensions.end();
}

// Skips the extension headers of IPv6, and returns the bytes from the transport's header on. Sets `record.undecoded` if
// a header is incomplete.
Bytes skip_extensions(Bytes rest, std::uint8_t next_header, Record &record) {
  constexpr std::uint8_t kAuthentication = 51, kFragmentHeader = 44;
  while (is_extension(next_header) || next_header == kFragmentHeader) {
    if (!rest.holds(8)) {
      record.undecoded = cut(rest, 8);
      return rest;
    }
    std::size_t size = 8;
    if (next_header == kFragmentHeader) {
      record.fragment_offset = rest.u16(2) & 0xfff8;
      set_present(record, kFragment);
    } else if (next_header == kAuthentication) {
      size = (rest.u8(1) + std::size_t{2}) * 4;
    } else {
      size = (rest.u8(1) + std::size_t{1}) * 8;
    }
    if (size > rest.length()) {
      record.undecoded = Undecoded::malformed;
      return rest;
    }
    next_header = rest.u8(0);
    rest = rest.after(size);
    if (record.has(kFragment) && record.fragment_offset != 0)
      break; // a later fragment has no transport header
  }
  record.protocol = next_header;
  set_present(record, kProtocol);
  return rest;
}

// Returns true if the packet's length is in an option after its header. Packets that the NIC has yet to segment, too.
bool is_jumbo(const Bytes &packet) {
  constexpr std::uint8_t kJumboOption = 0xc2;
  return packet.u8(6) == kHopByHop && packet.holds(43) && packet.u8(42) == kJumboOption;
}

constexpr std::size_t kIpv6HeaderBytes = 40;

// Parses an IPv6 header, or the GRH of RoCE v1, which is laid out like it. Returns false if it is not whole.
bool parse_ipv6_header(const Bytes &rest, Packet &packet) {
  Record &record = packet.record;
  if (!parse_version(rest, 6, record))
    return false;
  if (rest.holds(4))
    set_traffic_class(record, static_cast<std::uint8_t>(rest.u16(0) >> 4));
  set_address(rest, 8, 16, kSource, packet);
  set_address(rest, 24, 16, kDestination, packet);
  if (!rest.holds(kIpv6HeaderBytes))
    record.undecoded = cut(rest, kIpv6HeaderBytes);
  return rest.holds(kIpv6HeaderBytes);
}

void parse_ipv6(const Bytes &rest, Packet &packet) {
  if (!parse_ipv6_header(rest, packet))
    return;
  const std::size_t payload = rest.u16(4);
  const Bytes inside =
      (payload == 0 && is_jumbo(rest) ? rest : rest.first(kIpv6HeaderBytes + payload)).after(kIpv6HeaderBytes);
  const Bytes transport = skip_extensions(inside, rest.u8(6), packet.record);
  if (packet.record.undecoded == Undecoded::no)
    parse_transport(transport, packet);
}

// Parses a packet of RoCE v1: a GRH and a BTH.
void parse_roce_v1(const Bytes &rest, Packet &packet) {
  constexpr std::uint8_t kBthFollows = 0x1b;
  const bool is_whole = parse_ipv6_header(rest, packet);
  packet.record.present &= ~std::uint32_t{kVersion}; // GIDs are no addresses of IP
  if (is_whole && rest.u8(6) != kBthFollows)
    packet.record.undecoded = Undecoded::malformed;
  else if (is_whole)
    parse_roce(rest.first(kIpv6HeaderBytes + rest.u16(4)).after(kIpv6HeaderBytes), packet);
}

// Parses a pause frame: of priorities (IEEE 802.1Qbb) or of the link (802.3x).
void parse_mac_control(const Bytes &rest, Packet &packet) {
  constexpr std::uint16_t kPauseOfLink = 0x0001, kPauseOfPriorities = 0x0101;
  const std::uint16_t opcode = rest.holds(2) ? rest.u16(0) : kPauseOfLink;
  if (opcode != kPauseOfLink && opcode != kPauseOfPriorities) {
    stop_at(packet, Undecoded::not_ip, Layer::ethertype, kMacControl);
    return;
  }
  Record &record = packet.record;
  const std::size_t needed = opcode == kPauseOfLink ? 4 : 4 + 2 * kPriorities;
  if (!rest.holds(needed)) {
    record.undecoded = cut(rest, needed);
    return;
  }
  set_present(record, kPause);
  if (opcode == kPauseOfLink) {
    record.pause_quanta = rest.u16(2);
    return;
  }
  record.paused_priorities = rest.u8(3);
  set_present(record, kPausedPriorities);
  for (std::size_t priority = 0; priority < kPriorities; priority++) {
    if ((record.paused_priorities >> priority & 1) == 0)
      continue;
    packet.pause_quanta[priority] = rest.u16(4 + 2 * priority);
    record.pause_quanta = std::max(record.pause_quanta, packet.pause_quanta[priority]);
  }
}

bool is_vlan(std::uint16_t type) { return type == 0x8100 || type == 0x88a8 || type == 0x9100; }

void set_vlan(Record &record, std::uint16_t tag) {
  const std::uint16_t id = tag & 0x0fff;
  if (!record.has(kVlan)) {
    record.vlan_id = id;
    record.vlan_pcp = static_cast<std::uint8_t>(tag >> 13);
    set_present(record, kVlan);
  } else if (!record.has(kInnerVlan)) {
    record.inner_vlan_id = id;
    set_present(record, kInnerVlan);
  }
}

// Skips VLAN tags and returns the EtherType of the payload. The first two tags go to `record`, as does a truncation.
std::uint16_t skip_tags(Bytes &rest, std::uint16_t type, Record &record) {
  while (is_vlan(type)) {
    if (rest.holds(2))
      set_vlan(record, rest.u16(0));
    if (!rest.holds(4)) {
      record.undecoded = cut(rest, 4);
      return 0;
    }
    type = rest.u16(2);
    rest = rest.after(4);
  }
  return type;
}

// Parses the packet of the EtherType `type`, which may begin with VLAN tags.
void parse_network(Bytes rest, std::uint16_t type, Packet &packet) {
  type = skip_tags(rest, type, packet.record);
  if (packet.record.undecoded != Undecoded::no)
    return;
  if (type == kIpv4)
    parse_ipv4(rest, packet);
  else if (type == kIpv6)
    parse_ipv6(rest, packet);
  else if (type == kRoceV1)
    parse_roce_v1(rest, packet);
  else if (type == kMacControl)
    parse_mac_control(rest, packet);
  else if (type < kSmallestEtherType)
    stop_at(packet, Undecoded::not_ip, Layer::llc);
  else
    stop_at(packet, Undecoded::not_ip, Layer::ethertype, type);
}

// Parses a frame whose link header has `header_bytes`, with an EtherType at `type_at`.
void parse_after_header(const Bytes &frame, std::size_t header_bytes, std::size_t type_at, Packet &packet) {
  if (frame.holds(header_bytes))
    parse_network(frame.after(header_bytes), frame.u16(type_at), packet);
  else
    packet.record.undecoded = cut(frame, header_bytes);
}

void parse_raw(const Bytes &frame, Packet &packet) {
  if (!frame.holds(1)) {
    packet.record.undecoded = cut(frame, 1);
    return;
  }
  const int version = frame.u8(0) >> 4;
  parse_network(frame, version == 4 ? kIpv4 : version == 6 ? kIpv6 : 0, packet);
}

// Parses a frame that begins with the number of an address family, in either byte order.
void parse_loopback(const Bytes &frame, Packet &packet) {
  constexpr std::size_t kHeader = 4;
  constexpr std::array<std::uint32_t, 4> kInet6 = {10, 24, 28, 30}; // of Linux, NetBSD, FreeBSD and macOS
  if (!frame.holds(kHeader)) {
    packet.record.undecoded = cut(frame, kHeader);
    return;
  }
  const std::uint32_t word = frame.u32(0);
  const std::uint32_t family = word > 0xffff ? __builtin_bswap32(word) : word;
  const bool is_inet6 = std::find(kInet6.begin(), kInet6.end(), family) != kInet6.end();
  parse_network(frame.after(kHeader), family == 2 ? kIpv4 : is_inet6 ? kIpv6 : 0, packet);
}

} // namespace

void parse_frame(std::uint32_t link_type, std::span<const std::uint8_t> captured, std::uint32_t frame_bytes,
                 Packet &packet) {
  const Bytes frame(captured.data(), captured.size(), frame_bytes);
  switch (link_type) {
  case kEthernet:
    return parse_after_header(frame, kEthernetBytes, kEtherTypeAt, packet);
  case kLinuxCooked:
    return parse_after_header(frame, 16, 14, packet);
  case kLinuxCooked2:
    return parse_after_header(frame, 20, 0, packet);
  case kRaw:
  case kRawOfOldFiles:
  case kRawOfOpenBsd:
    return parse_raw(frame, packet);
  case kRawIpv4:
    return parse_ipv4(frame, packet);
  case kRawIpv6:
    return parse_ipv6(frame, packet);
  case kLoopback:
  case kLoopbackOfOpenBsd:
    return parse_loopback(frame, packet);
  default:
    stop_at(packet, Undecoded::link_type, Layer::link_type, link_type);
  }
}

} // namespace decoder
