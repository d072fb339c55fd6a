// SPDX-License-Identifier: Apache-2.0
// Packets in one pool. Queues and links are lists through it, so that nothing is allocated for a packet.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <vector>

namespace packets {

enum class Kind : std::uint8_t { kData, kAck, kNack, kCnp, kTrimmed }; // trimmed: data without its payload

struct alignas(64) Packet {
  Picos next_at;      // when the packet behind it on the same link arrives at the far end
  Bytes seq;          // of its first byte in the queue pair's stream; of an ACK or NACK, what is expected next
  std::uint32_t next; // behind it in the same queue or on the same link
  std::uint32_t pair;
  std::uint32_t hop;  // its place among all routes' ports, or its plane if switches choose its path
  std::uint32_t link; // by which it came, if switches choose its path
  std::uint16_t payload;
  std::uint16_t frame;   // as interfaces and queues count it
  std::uint16_t entropy; // that switches hash
  Kind kind;
  std::uint8_t priority;
  bool marked;
  bool wants_ack;
  bool is_ecn;         // marked where others are dropped
  bool echo;           // of TCP: ECE of an acknowledgement, CWR of a segment
  bool is_duplicate;   // an acknowledgement of what had arrived before
  std::uint8_t blocks; // selective acknowledgements of TCP
};

struct PacketList {
  std::uint32_t head = kNone, tail = kNone;
  bool empty() const { return head == kNone; }
};

class PacketPool {
public:
  Packet &operator[](std::uint32_t index) { return packets_[index]; }
  const Packet &operator[](std::uint32_t index) const { return packets_[index]; }
  std::size_t size() const { return packets_.size(); }

  std::uint32_t take() {
    if (free_ == kNone) {
      packets_.emplace_back();
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t taken = free_;
    free_ = packets_[taken].next;
    return taken;
  }

  void give_back(std::uint32_t index) {
    packets_[index].next = free_;
    free_ = index;
  }

  void append(PacketList &list, std::uint32_t index) {
    packets_[index].next = kNone;
    (list.empty() ? list.head : packets_[list.tail].next) = index;
    list.tail = index;
  }

  std::uint32_t pop(PacketList &list) {
    const std::uint32_t first = list.head;
    list.head = packets_[first].next;
    return first;
  }

private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = kNone;
};

} // namespace packets
