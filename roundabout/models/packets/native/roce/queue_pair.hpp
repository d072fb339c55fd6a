// SPDX-License-Identifier: Apache-2.0
// A RoCE queue pair, both ends of it: plain data of its sender, its receiver and jobs. A TCP connection and a flow with
// a window have one for the bytes of their streams.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"
#include "roundabout/models/packets/native/roce/reaction.h"

#include <algorithm>
#include <vector>

namespace packets {

// Another pair's message, of which the sender sends on what it has received.
struct Feeder {
  std::uint32_t pair;
  Bytes begin, bytes; // of that message
};

// The bytes of all messages are one stream, so that a message is a range of it, and a packet is known by its first
// byte.
struct QueuePair {
  // The sender. Bytes up to `acked` have arrived; those from `acked` to `next` are under way.
  Bytes acked = 0, next = 0, begin = 0, end = 0; // begin and end are those of the present message
  Picos posted_at = 0;
  double ps_per_byte = 0; // at which the message's bytes come into being
  Picos paced_until = 0, burst_at = 0;
  Bytes burst_bytes = 0;
  double gap_spread = 0; // of the gap after the burst, as a share of it
  int in_burst = 0;
  std::uint32_t out = kNone, back = kNone; // first hop of its routes; none within a host
  std::uint32_t next_in_turn = kNone;      // behind it at its host's port
  std::uint8_t priority = 0;
  bool waits_for_turn = false, waits_for_lead = false, stopped = true;
  bool repairs = false;               // lost packets go first, by selective repeat
  reaction *reaction_point = nullptr; // none within a host
  std::uint32_t tcp = kNone;          // the connection, if it is one of TCP
  std::uint32_t window = kNone;       // the flow, if its congestion control has a window, as Swift's

  // A message may be no more than `lead` ahead of what each feeder has brought its sender.
  Bytes lead = 0;
  std::vector<Feeder> feeders;
  std::vector<std::uint32_t> followers; // pairs that this one feeds in the present phase

  // The receiver.
  Bytes expected = 0; // all before it has arrived
  Bytes awaited = 0;  // end of the last message for which the receiving worker waits
  Picos cnp_gap = 0;
  std::uint32_t notification_point = kNone; // whose gap between CNPs it keeps
  std::uint32_t repeat = kNone;             // its selective repeat; none for go-back-N
  bool nack_sent = false;

  std::uint32_t sender = kNone, receiver = kNone; // workers
  std::uint32_t from_host = 0, to_host = 0;
  std::int64_t packets = 0, resent = 0, delivered = 0, marked = 0;

  bool all_sent() const { return next >= end && !repairs; }
  bool waits_for_answer() const { return all_sent() || waits_for_lead; } // a lost packet shows by a timeout alone
  bool is_done() const { return acked >= end && awaited >= end; }
};

} // namespace packets
