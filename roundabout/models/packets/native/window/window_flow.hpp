// SPDX-License-Identifier: Apache-2.0
// A flow with a window: the sender's packets under way and the receiver's that came out of order.
#pragma once

#include "roundabout/models/packets/native/roce/selective_repeat.hpp"
#include "roundabout/models/packets/native/window/window_control.h"

#include <deque>

namespace packets {

struct SentPacket {
  std::int64_t order = 0; // of its last transmission among all of its flow
  std::uint16_t entropy = 0;
  bool is_acked = false;
  bool is_lost = false; // and is to be sent again
  bool was_resent = false;
};

struct WindowFlow {
  window_control *control = nullptr;
  window_plan plan{};
  Picos rto_min = 0;
  std::int64_t reordering = 0;

  // The sender. `sent` begins with the packet at the pair's `acked`; all are full but a message's last one.
  std::deque<SentPacket> sent;
  Bytes in_flight = 0;
  std::int64_t transmissions = 0;
  std::int64_t newest_acked = 0; // the latest transmission that was acknowledged
  std::int64_t lost = 0;         // packets to be sent again
  std::size_t first_lost = 0;    // No packet of `sent` before it is lost.
  Picos sent_at = 0;             // its last packet
  Picos progress_at = 0;         // an ACK of something new, or the first packet under way
  Picos srtt = 0, rttvar = 0;    // RFC 6298
  int backoff = 0;               // timeouts in a row
  std::int64_t timeouts = 0;

  // The receiver.
  Ranges arrived;
};

} // namespace packets
