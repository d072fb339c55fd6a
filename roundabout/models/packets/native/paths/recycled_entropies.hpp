// SPDX-License-Identifier: Apache-2.0
// REPS, recycled entropies for packet spraying (Bonato et al., arXiv:2407.21625; uet-htsim, htsim/sim/uec_mp.cpp and
// buffer_reps.cpp): a packet takes the path of an earlier one whose ACK came without a mark, or else any. After a loss,
// which shows a failure, the sender keeps to the paths that it has: it takes them again and again for a while.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"
#include "roundabout/models/packets/native/paths/path_feedback.hpp"

namespace packets {

class RecycledEntropies {
public:
  std::uint32_t next(std::uint32_t paths, Random &random) {
    const bool explores = explorations_ > 0;
    explorations_ -= explores;
    if (explores || count_ == 0 || (!is_frozen_ && fresh_ == 0))
      return random.below(paths);
    return is_frozen_ ? repeat() : recycle();
  }

  void learn(std::uint32_t path, PathFeedback feedback, Picos now) {
    if (feedback == PathFeedback::kLost && !is_frozen_ && explorations_ == 0) {
      is_frozen_ = true;
      thaws_at_ = now + kFrozen;
    }
    if (is_frozen_ && now > thaws_at_) {
      *this = {};
      explorations_ = kExplorations;
    }
    if (feedback == PathFeedback::kClean)
      keep(path);
  }

private:
  static constexpr std::uint32_t kEntries = 8;       // of the paper's and uet-htsim's buffer
  static constexpr std::uint32_t kExplorations = 16; // packets on any path, after a failure
  static constexpr Picos kFrozen = 10'000'000'000;   // ps: uet-htsim's exit_freeze_after

  struct Entry {
    std::uint32_t path = 0;
    bool is_fresh = false; // not taken again yet
  };

  void keep(std::uint32_t path) {
    fresh_ += !entries_[head_].is_fresh;
    entries_[head_] = {path, true};
    head_ = (head_ + 1) % kEntries;
    count_ += count_ < kEntries;
  }

  // Takes the oldest fresh path.
  std::uint32_t recycle() { return take(entries_[(head_ + kEntries - fresh_) % kEntries]); }

  // Takes the next path, fresh or not.
  std::uint32_t repeat() {
    Entry &found = entries_[repeated_];
    repeated_ = (repeated_ + 1) % count_;
    return take(found);
  }

  std::uint32_t take(Entry &entry) {
    fresh_ -= entry.is_fresh;
    entry.is_fresh = false;
    return entry.path;
  }

  Entry entries_[kEntries];
  std::uint32_t head_ = 0; // the entry that is written next
  std::uint32_t count_ = 0, fresh_ = 0;
  std::uint32_t repeated_ = 0; // the next one to repeat
  std::uint32_t explorations_ = 0;
  bool is_frozen_ = false;
  Picos thaws_at_ = 0;
};

} // namespace packets
