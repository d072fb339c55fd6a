// SPDX-License-Identifier: Apache-2.0
// Which of a port's queues sends next: strict priority, and deficit weighted round robin below it.
#pragma once

#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>
#include <span>

namespace packets {

// Deficit round robin (Shreedhar and Varghese, SIGCOMM'95) among the lowest queues of a port, each with a quantum of
// its own. The queues above them come first, strictly.
class DeficitRoundRobin {
public:
  // Quanta are in bytes, of the lowest queues.
  explicit DeficitRoundRobin(std::span<const Bytes> quanta) : count_(static_cast<int>(quanta.size())) {
    std::ranges::copy(quanta, quanta_);
  }

  // Returns which of the queues in `may` has its turn, and charges it the frame at its head. `head_bytes` is called
  // with a queue.
  template <typename HeadBytes> int choose(std::uint8_t may, HeadBytes head_bytes) {
    const auto below = static_cast<std::uint8_t>(may & (bit(count_) - 1));
    if (below != may)
      return highest(may);
    for (;; step()) {
      if (!(may & bit(turn_)))
        continue;
      if (!is_credited_)
        deficits_[turn_] += quanta_[turn_];
      is_credited_ = true;
      const Bytes frame = head_bytes(turn_);
      if (frame > deficits_[turn_])
        continue;
      deficits_[turn_] -= frame;
      return turn_;
    }
  }

  // A queue that has become empty keeps no credit, and its turn ends.
  void on_empty(int queue) {
    if (queue >= count_)
      return;
    deficits_[queue] = 0;
    if (queue == turn_)
      step();
  }

private:
  void step() {
    turn_ = turn_ + 1 < count_ ? turn_ + 1 : 0;
    is_credited_ = false;
  }

  Bytes quanta_[kPriorities] = {}, deficits_[kPriorities] = {};
  int count_, turn_ = 0;
  bool is_credited_ = false;
};

} // namespace packets
