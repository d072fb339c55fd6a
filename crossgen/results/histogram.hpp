// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace crossgen {

// Counts values in the layout of Gil Tene's HdrHistogram: buckets as wide as a 1024th of their power of two, so a
// percentile is right to 0.1 %. Our own, because Debian and Ubuntu package no C or C++ one and the layout is all of it
// that is needed. Any thread may record and read at any time.
class Histogram {
public:
  Histogram();

  // Values below 0 count as 0, values above 2^42 (73 minutes in nanoseconds) as that.
  void record(std::int64_t value);

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  double mean() const;
  std::uint64_t most() const { return most_.load(std::memory_order_relaxed); }

  // The greatest value of the bucket that holds this percentile.
  std::uint64_t percentile(double percent) const;

  // count, mean, p50, ..., max, divided by `unit`; null where nothing was recorded.
  nlohmann::ordered_json json(double unit) const;

private:
  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t greatest_in(std::size_t bucket);

  std::vector<std::atomic<std::uint64_t>> buckets_;
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<std::uint64_t> sum_ = 0;
  std::atomic<std::uint64_t> most_ = 0;
};

} // namespace crossgen
