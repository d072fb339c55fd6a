// SPDX-License-Identifier: Apache-2.0
// The packet memory that all ports of a switch share, with dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 1998).
#pragma once

#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>

namespace packets {

// As Python has it (roundabout/models/packets/switches.py).
struct BufferPlan {
  Bytes shared_bytes;     // of the memory, without what is reserved as headroom
  Bytes xon_offset_bytes; // a link goes on when it holds that much less than its threshold
  double alpha;           // a queue, or what came over a link, may hold alpha times the free bytes
  std::int64_t is_lossless;
};

// Cumulative, or as it stands, of one switch.
struct BufferState {
  Bytes shared = 0, headroom = 0; // in use
  Bytes most = 0;                 // that both together have held
};

class SharedBuffer {
public:
  explicit SharedBuffer(const BufferPlan &plan) : plan_(plan) {}

  bool is_lossless() const { return plan_.is_lossless != 0; }
  const BufferState &state() const { return state_; }

  // The limit of a queue at present.
  Bytes threshold() const {
    return static_cast<Bytes>(plan_.alpha * static_cast<double>(plan_.shared_bytes - state_.shared));
  }
  // The limit at or below which a paused link resumes.
  Bytes xon() const { return std::max<Bytes>(threshold() - plan_.xon_offset_bytes, 0); }

  // Returns true if the buffer accepts a frame beside `held` bytes of its queue or link.
  bool admits(Bytes held, Bytes frame) const {
    return held + frame <= threshold() && state_.shared + frame <= plan_.shared_bytes;
  }

  void take(Bytes shared, Bytes headroom) {
    state_.shared += shared;
    state_.headroom += headroom;
    state_.most = std::max(state_.most, state_.shared + state_.headroom);
  }
  void give_back(Bytes shared, Bytes headroom) {
    state_.shared -= shared;
    state_.headroom -= headroom;
  }

private:
  BufferPlan plan_;
  BufferState state_;
};

// The buffer that the receiving switch reserves for a link, beyond the shared bytes. After XOFF, frames that do not fit
// under the threshold wait here.
struct Headroom {
  Bytes bytes = 0; // of each priority
  Bytes used[kPriorities] = {};
};

} // namespace packets
