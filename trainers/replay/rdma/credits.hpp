// SPDX-License-Identifier: Apache-2.0
// Which chunks may be on their way, and what a receiver says back; no device.
//
// A write with an immediate takes one of the receives that its receiver has posted. One that finds none is refused and
// sent again later, by the NICs: so senders count, and a chunk is sent only where a receive waits for it.
#pragma once

#include <cstdint>
#include <utility>

namespace replay::rdma {

constexpr std::uint32_t kChunks = 64;               // receives that each end has posted
constexpr std::uint32_t kWorthSaying = kChunks / 4; // of them, when a receiver tells that they are there again

// What a receiver says in the 32 bits of an immediate: how many receives it has posted again, and, or, an answer.
struct Word {
  std::uint32_t posted = 0;
  bool answer = false;

  std::uint32_t packed() const { return posted << 1 | static_cast<std::uint32_t>(answer); }
  static Word unpacked(std::uint32_t word) { return {word >> 1, (word & 1) != 0}; }

  friend bool operator==(const Word &, const Word &) = default;
};

// The sender's: receives that wait at the other end.
class Credits {
public:
  bool any() const { return left_ > 0; }
  void spend() { left_--; }
  // Whether no more are there than ever were: a peer that says otherwise is none of ours.
  bool gain(std::uint32_t posted) {
    left_ += posted;
    return posted <= kChunks && left_ <= kChunks;
  }

private:
  std::uint32_t left_ = kChunks;
};

// The receiver's: receives posted again that it has not told of.
class Untold {
public:
  void add() { count_++; }
  bool worth_saying() const { return count_ >= kWorthSaying; }
  std::uint32_t take() { return std::exchange(count_, 0); }

private:
  std::uint32_t count_ = 0;
};

} // namespace replay::rdma
