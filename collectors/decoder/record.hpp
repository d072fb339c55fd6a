// SPDX-License-Identifier: Apache-2.0
// The decoded fields of one packet.
#pragma once

#include <array>
#include <cstdint>

namespace decoder {

// Bits of Record::present, one for each group of fields that may be known.
enum Present : std::uint32_t {
  kAlways = 0,
  kTime = 1U << 0,
  kVlan = 1U << 1,
  kInnerVlan = 1U << 2,
  kVersion = 1U << 3,
  kTrafficClass = 1U << 4, // dscp and ecn
  kProtocol = 1U << 5,
  kFragment = 1U << 6,
  kSource = 1U << 7,
  kDestination = 1U << 8,
  kPorts = 1U << 9,
  kPayload = 1U << 10,
  kTcpSeq = 1U << 11,
  kTcpAck = 1U << 12,
  kTcpFlags = 1U << 13,
  kFlow = 1U << 14,
  kOpcode = 1U << 15,
  kQueuePair = 1U << 16,
  kPsn = 1U << 17,
  kDirection = 1U << 18,
  kUndecoded = 1U << 19,
  kVni = 1U << 20,
  kOuterTrafficClass = 1U << 21, // outer_dscp and outer_ecn
  kPause = 1U << 22,
  kPausedPriorities = 1U << 23,
};

// The reason why a packet was not decoded further.
enum class Undecoded : std::uint32_t { no, truncated, not_ip, malformed, link_type, protocol, fragment };
constexpr std::size_t kUndecodedKinds = 7;

enum class Direction : std::uint32_t { out, in };

struct Record {
  std::int64_t time_ns = 0; // UTC
  std::uint32_t present = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t source = 0; // index among the block's addresses
  std::uint32_t destination = 0;
  std::uint32_t flow = 0;
  std::uint32_t tcp_seq = 0;
  std::uint32_t tcp_ack = 0;
  std::uint32_t destination_qp = 0;
  std::uint32_t psn = 0;
  std::uint32_t vxlan_vni = 0;
  Undecoded undecoded = Undecoded::no;
  Direction direction = Direction::out;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t vlan_id = 0;
  std::uint16_t inner_vlan_id = 0;
  std::uint16_t fragment_offset = 0; // bytes
  std::uint16_t tcp_flags = 0;
  std::uint16_t pause_quanta = 0; // the longest of the frame; a quantum is 512 bit times
  std::uint8_t ip_version = 0;
  std::uint8_t protocol = 0;
  std::uint8_t dscp = 0;
  std::uint8_t ecn = 0;
  std::uint8_t opcode = 0;
  std::uint8_t vlan_pcp = 0;
  std::uint8_t outer_dscp = 0;
  std::uint8_t outer_ecn = 0;
  std::uint8_t paused_priorities = 0; // a bit for each priority, the lowest for priority 0

  bool has(std::uint32_t fields) const { return (present & fields) == fields; }
};

// An IP address; an IPv4 address is in the first four bytes.
struct Address {
  std::array<std::uint8_t, 16> bytes{};
  std::uint32_t version = 0;

  bool operator==(const Address &) const = default;
};
static_assert(sizeof(Address) == 20);

} // namespace decoder
