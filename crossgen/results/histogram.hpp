// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace crossgen {

// A histogram in the layout of Gil Tene's HdrHistogram, whose buckets are a 1024th of their power of two wide, so
// percentiles are right to 0.1 %. It is our own, because Debian and Ubuntu have no C or C++ package of it, and only the
// layout is needed. Any thread may record and read at any time.
class Histogram {
public:
  Histogram();

  // Counts a value. Values below 0 count as 0, and values above 2^42 (73 minutes in nanoseconds) as 2^42.
  void record(std::int64_t value);

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  double mean() const;
  std::uint64_t most() const { return most_.load(std::memory_order_relaxed); }

  // Returns the greatest value of the bucket that holds this percentile.
  std::uint64_t percentile(double percent) const;

  // Returns count, mean, p50 to max as JSON, divided by `unit`; null if nothing was recorded.
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
