// SPDX-License-Identifier: Apache-2.0
// The packet memory that all ports of a switch share, with dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 1998).
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>

namespace packets {

class SharedBuffer {
public:
  explicit SharedBuffer(const buffer_plan &plan) : plan_(plan) {}

  bool is_lossless() const { return plan_.is_lossless != 0; }
  const buffer_sample &state() const { return state_; }

  // The limit of a queue at present.
  Bytes threshold() const {
    return static_cast<Bytes>(plan_.alpha * static_cast<double>(plan_.shared_bytes - state_.shared_bytes));
  }
  // The limit at or below which a paused link resumes.
  Bytes xon() const { return std::max<Bytes>(threshold() - plan_.xon_offset_bytes, 0); }

  // Returns true if the buffer accepts a frame beside `held` bytes of its queue or link.
  bool admits(Bytes held, Bytes frame) const {
    return held + frame <= threshold() && state_.shared_bytes + frame <= plan_.shared_bytes;
  }

  void take(Bytes shared, Bytes headroom) {
    state_.shared_bytes += shared;
    state_.headroom_bytes += headroom;
    state_.most_bytes = std::max(state_.most_bytes, state_.shared_bytes + state_.headroom_bytes);
  }
  void give_back(Bytes shared, Bytes headroom) {
    state_.shared_bytes -= shared;
    state_.headroom_bytes -= headroom;
  }

private:
  buffer_plan plan_;
  buffer_sample state_{};
};

// The buffer that the receiving switch reserves for a link, beyond the shared bytes. After XOFF, frames that do not fit
// under the threshold wait here.
struct Headroom {
  Bytes bytes = 0; // of each priority
  Bytes used[kPriorities] = {};
};

} // namespace packets
