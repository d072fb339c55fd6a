// SPDX-License-Identifier: Apache-2.0
// One direction of a link: the port that feeds it, and the packets on it. forwarding.cpp moves the packets.
#pragma once

#include "roundabout/models/packets/native/packet.hpp"

#include <bit>

namespace packets {

inline constexpr int kPriorities = 8;
inline constexpr std::uint8_t kCnpPriority = kPriorities - 1; // before all data

// Cumulative, of one queue or of all of a port's together.
struct QueueCounters {
  std::int64_t tx_bytes = 0, tx_packets = 0, drops = 0, marks = 0;
  std::int64_t pauses = 0; // pause frames that it obeyed
  Picos paused = 0;
};

struct Queue {
  PacketList waiting;
  Bytes bytes = 0;
};

// Queue pairs of a host that may send now, served in turn.
struct QueuePairList {
  std::uint32_t head = kNone, tail = kNone;
  bool empty() const { return head == kNone; }
};

inline std::uint8_t bit(int priority) { return static_cast<std::uint8_t>(1 << priority); }
inline int highest(std::uint8_t priorities) { return std::bit_width(priorities) - 1; }

struct alignas(64) Port {
  Picos free_at = 0;      // when its last packet's last bit leaves
  std::uint8_t ready = 0; // priorities with a packet or a queue pair that waits
  std::uint8_t paused = 0;
  bool is_due = false; // its next start is in the schedule
  bool is_host = false;
  bool is_up = true;
  bool loses = false;                                // packets on the link: all while it is down, or a share of them
  std::uint64_t payload_ps_q20 = 0, line_ps_q20 = 0; // a byte's time at these rates, in units of 2^-20 ps
  Picos control_ps = 0, delay = 0;
  PacketList on_link;
  Bytes tx_bytes = 0;
  std::int64_t tx_packets = 0;

  Bytes queue_bytes = -1, kmin_bytes = 0, kmax_bytes = 0;
  double pmax = 0, loss = 0;
  double link_loss = 0;       // share of all frames that the link loses
  std::int64_t lost_data = 0; // data packets that the link lost, or that its failure dropped
  std::uint16_t failures = 0; // so far: pause frames of before do not count
  bool marks_on_arrival = false, counts_queues = false;
  bool trims = false;              // what finds no room, in place of dropping it
  bool drops_early = false;        // some of what arrives is lost or signalled before it could wait: by `loss`, by RED
  std::uint32_t buffer = kNone;    // that its switch's ports share
  std::uint32_t scheduler = kNone; // of weights; without one the highest priority goes first
  std::uint32_t red = kNone;
  std::uint8_t xoff_sent = 0; // Priorities that the switch at the link's end has paused at this port.
  Bytes xoff_bytes = -1, xon_bytes = 0, buffer_bytes = 0;
  Queue queues[kPriorities];
  Bytes held[kPriorities] = {}; // by that switch, of what came over the link
  QueuePairList turns[kPriorities];
  Picos paused_since[kPriorities] = {};
  QueueCounters counters[kPriorities]; // what is sent is counted by queue only where someone reads it

  // Returns true if a packet that comes now leaves at once: it may be sent, and nothing else may be.
  bool is_idle(int priority, Picos now) const {
    return free_at <= now && !is_due && !(ready & ~paused) && !(paused & bit(priority));
  }

  void set_paused(int priority, bool is_paused, Picos now) {
    if (is_paused) {
      counters[priority].pauses++;
      paused |= bit(priority);
      paused_since[priority] = now;
    } else {
      paused &= static_cast<std::uint8_t>(~bit(priority));
      counters[priority].paused += now - paused_since[priority];
    }
  }

  // Returns since when the first of its paused queues is paused, or -1 if none is.
  Picos first_paused_since() const {
    Picos first = -1;
    for (int queue = 0; queue < kPriorities; queue++)
      if ((paused & bit(queue)) && (first < 0 || paused_since[queue] < first))
        first = paused_since[queue];
    return first;
  }

  QueueCounters read_counters(int queue, Picos now) const {
    QueueCounters found = counters[queue];
    if (paused & bit(queue))
      found.paused += now - paused_since[queue];
    return found;
  }

  // Returns the sums of all queues.
  QueueCounters read_counters(Picos now) const {
    QueueCounters sum{tx_bytes, tx_packets};
    for (int queue = 0; queue < kPriorities; queue++) {
      const QueueCounters each = read_counters(queue, now);
      sum.drops += each.drops;
      sum.marks += each.marks;
      sum.pauses += each.pauses;
      sum.paused += each.paused;
    }
    return sum;
  }

  Bytes backlog() const {
    Bytes sum = 0;
    for (const Queue &queue : queues)
      sum += queue.bytes;
    return sum;
  }
};

} // namespace packets
