// SPDX-License-Identifier: Apache-2.0
// Loss detection and recovery of a TCP sender: RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937), as in
// Linux.
#pragma once

#include "roundabout/models/packets/native/packet.hpp"
#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/tcp/connection.hpp"

namespace packets {

// In ps. A probe, or the wait for reordered segments, takes at least that much longer (Linux' TCP_TIMEOUT_MIN_US).
inline constexpr Picos kTimerSlack = 2'000'000'000;

// When the segments that one acknowledgement covers were sent; below 0 if all of them were resent.
struct DeliverySamples {
  Picos first_sent_at = -1, last_sent_at = -1;
  bool has_resent = false;
};

void note_delivered(Connection &c, const Segment &segment, Picos now, DeliverySamples &samples);
void mark_sacked(Connection &c, const Interval &block, Picos now, DeliverySamples &samples);
void update_rtt(Connection &c, Picos rtt);

// Marks segments as lost that were sent long enough before one that has arrived. Returns how long to wait for others.
Picos find_losses(Connection &c, Picos now);

void begin_reduction(QueuePair &pair, Connection &c); // of the window to ssthresh
void end_reduction(Connection &c);
void change_state(QueuePair &pair, Connection &c, bool echo); // after an acknowledgement
// Reduces the window towards ssthresh (RFC 6937, with the reduction bound of slow start).
void reduce(Connection &c, std::uint32_t delivered, bool advanced, bool has_losses);
// Ends a tail-loss probe if the acknowledgement covers it (RFC 8985, section 7.4).
void end_probe(QueuePair &pair, Connection &c, const Packet &packet, std::uint32_t delivered);

} // namespace packets
