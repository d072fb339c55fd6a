// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace crossgen {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr unsigned kPrecisionBits = 10;
constexpr std::size_t kBucketsPerOctave = std::size_t{1} << kPrecisionBits;
constexpr std::uint64_t kMaxValue = std::uint64_t{1} << 42;

} // namespace

// Below 2^11 each value has its own bucket; each power of two above has 2^10.
std::size_t Histogram::bucket_of(std::uint64_t value) {
  const auto bits = static_cast<unsigned>(std::bit_width(value | kBucketsPerOctave));
  const unsigned shift = bits - 1 - kPrecisionBits;
  return shift * kBucketsPerOctave + static_cast<std::size_t>(value >> shift);
}

std::uint64_t Histogram::greatest_in(std::size_t bucket) {
  if (bucket < 2 * kBucketsPerOctave)
    return bucket;
  const std::size_t shift = bucket / kBucketsPerOctave - 1;
  return ((bucket - shift * kBucketsPerOctave + 1) << shift) - 1;
}

Histogram::Histogram() : buckets_(bucket_of(kMaxValue) + 1) {}

void Histogram::record(std::int64_t value) {
  const std::uint64_t counted = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)), kMaxValue);
  buckets_[bucket_of(counted)].fetch_add(1, kRelaxed);
  count_.fetch_add(1, kRelaxed);
  sum_.fetch_add(counted, kRelaxed);
  std::uint64_t most = most_.load(kRelaxed);
  while (counted > most && !most_.compare_exchange_weak(most, counted, kRelaxed))
    ;
}

double Histogram::mean() const {
  return count() == 0 ? 0 : static_cast<double>(sum_.load(kRelaxed)) / static_cast<double>(count());
}

std::uint64_t Histogram::percentile(double percent) const {
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(percent / 100 * static_cast<double>(count()))));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); bucket++)
    if ((seen += buckets_[bucket].load(kRelaxed)) >= wanted)
      return std::min(greatest_in(bucket), most());
  return most();
}

nlohmann::ordered_json Histogram::json(double unit) const {
  if (count() == 0)
    return nullptr;
  const auto at = [&](double percent) { return static_cast<double>(percentile(percent)) / unit; };
  return {
      {"count", count()}, {"mean", mean() / unit}, {"p50", at(50)},     {"p90", at(90)},
      {"p95", at(95)},    {"p99", at(99)},         {"p99_9", at(99.9)}, {"max", static_cast<double>(most()) / unit}};
}

} // namespace crossgen
