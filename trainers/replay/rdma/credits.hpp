// SPDX-License-Identifier: Apache-2.0
// Flow control of chunks, and the receiver's messages, without a device.
//
// A write with an immediate consumes one of the receives that its receiver has posted. NICs refuse a write without a
// receive, and repeat it later. So senders count, and send a chunk only if a receive is posted for it.
#pragma once

#include <cstdint>
#include <utility>

namespace replay::rdma {

constexpr std::uint32_t kChunks = 64;               // number of receives that each end posts
constexpr std::uint32_t kWorthSaying = kChunks / 4; // number of reposted receives that a receiver reports at once

// A receiver's message in the 32 bits of an immediate: the number of receives posted again, and whether it is an
// answer.
struct Word {
  std::uint32_t posted = 0;
  bool answer = false;

  std::uint32_t packed() const { return posted << 1 | static_cast<std::uint32_t>(answer); }
  static Word unpacked(std::uint32_t word) { return {word >> 1, (word & 1) != 0}; }

  friend bool operator==(const Word &, const Word &) = default;
};

// The sender's count of receives that are posted at the other end.
class Credits {
public:
  bool any() const { return left_ > 0; }
  void spend() { left_--; }
  // Adds receives posted again. Returns false if there would be more than kChunks, which only a foreign peer reports.
  bool gain(std::uint32_t posted) {
    left_ += posted;
    return posted <= kChunks && left_ <= kChunks;
  }

private:
  std::uint32_t left_ = kChunks;
};

// The receiver's count of receives posted again that it has not reported yet.
class Untold {
public:
  void add() { count_++; }
  bool worth_saying() const { return count_ >= kWorthSaying; }
  std::uint32_t take() { return std::exchange(count_, 0); }

private:
  std::uint32_t count_ = 0;
};

} // namespace replay::rdma
