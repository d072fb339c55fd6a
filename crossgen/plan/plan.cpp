// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/plan.hpp"

#include "crossgen/plan/random.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <cmath>

namespace crossgen {
namespace {

// Independent random streams, so that one choice does not shift another.
enum Stream : std::uint32_t { kGapStream, kSizeStream, kDestinationStream, kBurstStream, kPhaseStream };

enum BurstClass : std::uint16_t { kBurstClass, kQuietClass };

constexpr double kMaxFlows = 1e9;
constexpr std::uint64_t kMinQuietFlows = 8; // Algorithm 2

// Salamy names the distributions of a burst's split and arrival, not their parameters: both are guesses. The split
// is even, give or take a tenth. The second flow comes so early that the first one still occupies the link: a burst is
// then one block of bytes from its very start, which is what its height and width say.
constexpr double kSplitDeviation = 0.1;
constexpr double kSecondArrival = 0.1; // of the width, on average

// Room for roundings of a quotient, so that a load and sizes that are both divided by 100 hold as many flows as before.
constexpr double kRounding = 1 + 1e-12;

double volume_bytes(const PlanSpec &spec, std::uint64_t time_ns) {
  return spec.load_gbps * static_cast<double>(time_ns) / 8;
}

// Returns how many times the load holds the mean size.
std::uint64_t whole_times(const PlanSpec &spec, const Sizes &sizes) {
  return static_cast<std::uint64_t>(volume_bytes(spec, spec.duration_ns) / sizes.mean_bytes() * kRounding);
}

std::uint64_t whole_bytes(double bytes) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(bytes)));
}

// The flows that Algorithm 2 draws between two bursts: `bytes` divided by the mean size, rounded down. If that is less
// than eight, it draws eight flows and scales their sizes to the total.
struct Quiet {
  std::uint64_t flows;
  double scale;

  Quiet(double bytes, double mean_bytes) : flows(static_cast<std::uint64_t>(bytes / mean_bytes)), scale(1) {
    if (flows < kMinQuietFlows) {
      flows = kMinQuietFlows;
      scale = bytes / kMinQuietFlows / mean_bytes;
    }
  }
};

bool is_exact(const PlanSpec &spec) { return spec.burst && spec.burst->volumes == Volumes::kExact; }

// Returns the offered load, as a mean over all seeds. It is less than the requested load, because the algorithms round
// the number of flows down.
double expected_gbps(const PlanSpec &spec, const Sizes &sizes) {
  if (is_exact(spec))
    return spec.load_gbps;
  const std::uint64_t length_ns = spec.burst ? spec.burst->period_ns : spec.duration_ns;
  const double volume = volume_bytes(spec, length_ns);
  double bytes = static_cast<double>(whole_times(spec, sizes)) * sizes.mean_bytes();
  if (spec.burst) {
    const double share = spec.burst->share();
    const Quiet quiet(volume * (1 - share), sizes.mean_bytes());
    bytes = volume * share + static_cast<double>(quiet.flows) * quiet.scale * sizes.mean_bytes();
  }
  return 8 * bytes / static_cast<double>(length_ns);
}

// Returns the standard deviation of the offered load over all seeds. It follows from the distribution of sizes: where a
// few large flows have most bytes, all drawn sizes may be small.
double standard_error_gbps(const PlanSpec &spec, const Sizes &sizes) {
  if (is_exact(spec))
    return 0;
  auto flows = static_cast<double>(whole_times(spec, sizes));
  double scale = 1;
  if (spec.burst) {
    const Quiet quiet(volume_bytes(spec, spec.burst->period_ns) * (1 - spec.burst->share()), sizes.mean_bytes());
    flows = static_cast<double>(quiet.flows * (spec.duration_ns / spec.burst->period_ns));
    scale = quiet.scale;
  }
  return 8 * std::sqrt(flows) * scale * sizes.standard_deviation_bytes() / static_cast<double>(spec.duration_ns);
}

double checkpoint_period_ns(const PlanSpec &spec, const Sizes &sizes) {
  return 8 * sizes.mean_bytes() / spec.load_gbps;
}

// The starts of `flows` flows in a window: their gaps, one more than flows, stretched so that they fill it. Exponential
// gaps so stretched are a Poisson process, given its number of arrivals.
class Arrivals {
public:
  Arrivals(Random &random, Gaps gaps, std::uint64_t flows, std::uint64_t from_ns, std::uint64_t length_ns)
      : random_(random), gaps_(gaps), mean_gap_us_(static_cast<double>(length_ns) / 1e3 / static_cast<double>(flows)),
        from_ns_(from_ns), length_ns_(static_cast<double>(length_ns)) {
    Random ahead = random;
    for (std::uint64_t i = 0; i <= flows; i++)
      total_ += gap(ahead);
    if (total_ == 0)
      total_ = 1;
  }

  std::uint64_t next_ns() {
    elapsed_ += gap(random_);
    return from_ns_ + static_cast<std::uint64_t>(elapsed_ / total_ * length_ns_);
  }

private:
  double gap(Random &random) const {
    return gaps_ == Gaps::kPoissonProcess ? random.exponential() : random.poisson(mean_gap_us_);
  }

  Random &random_;
  Gaps gaps_;
  double mean_gap_us_;
  std::uint64_t from_ns_;
  double length_ns_;
  double total_ = 0;
  double elapsed_ = 0;
};

class Planner {
public:
  Planner(const PlanSpec &spec, const Sizes &sizes, const Emit &emit) : spec_(spec), sizes_(sizes), emit_(emit) {}

  // Algorithm 1. A storage server's blocks and KV caches come by it, too.
  void consistent() {
    const std::uint64_t flows = whole_times(spec_, sizes_);
    Arrivals arrivals(gap_random_, spec_.gaps, flows, 0, spec_.duration_ns);
    for (std::uint64_t i = 0; i < flows; i++)
      emit_({arrivals.next_ns(), whole_bytes(draw_bytes()), destination(), 0});
  }

  // Algorithm 2.
  void bursts() {
    for (std::uint64_t start_ns = 0; start_ns < spec_.duration_ns; start_ns += spec_.burst->period_ns)
      period(start_ns);
  }

  // Each period begins at a phase that the seed draws, and lasts as long as the load takes for a part.
  void checkpoints() {
    const double phase = 1 - Random(spec_.seed, kPhaseStream).uniform();
    const std::vector<std::uint64_t> parts =
        split(whole_bytes(sizes_.mean_bytes()), std::vector<double>(spec_.destinations.size(), 1));
    const double period_ns = checkpoint_period_ns(spec_, sizes_);
    for (std::uint64_t i = 0; i < whole_times(spec_, sizes_); i++) {
      const auto start_ns = static_cast<std::uint64_t>((static_cast<double>(i) + phase) * period_ns);
      for (std::size_t place = 0; place < parts.size(); place++)
        emit_({std::min(start_ns, spec_.duration_ns), parts[place], static_cast<std::uint16_t>(place), 0});
    }
  }

private:
  void period(std::uint64_t start_ns) {
    const Burst &burst = *spec_.burst;
    const double volume = volume_bytes(spec_, burst.period_ns);
    const auto burst_bytes = static_cast<std::uint64_t>(std::llround(volume * burst.share()));
    burst_flows(start_ns, burst_bytes);
    quiet_flows(start_ns, static_cast<std::uint64_t>(std::llround(volume)) - burst_bytes,
                static_cast<double>(burst_bytes) / static_cast<double>(burst.width_ns));
  }

  void burst_flows(std::uint64_t start_ns, std::uint64_t bytes) {
    const double first = std::clamp(0.5 + kSplitDeviation * burst_random_.normal(), 0.1, 0.9);
    const std::vector<std::uint64_t> parts = split(bytes, {first, 1 - first});
    const double second_start = std::min(kSecondArrival * burst_random_.exponential(), 1.0);
    const auto delay_ns = static_cast<std::uint64_t>(second_start * static_cast<double>(spec_.burst->width_ns - 1));
    emit_({start_ns, parts[0], destination(), kBurstClass});
    emit_({start_ns + delay_ns, parts[1], destination(), kBurstClass});
  }

  void quiet_flows(std::uint64_t period_ns, std::uint64_t bytes, double bytes_per_ns) {
    const std::vector<std::uint64_t> parts = quiet_bytes(bytes);
    const std::uint64_t flows = parts.size();
    const std::uint64_t from_ns = period_ns + spec_.burst->width_ns;
    const std::uint64_t end_ns = period_ns + spec_.burst->period_ns;
    Arrivals arrivals(gap_random_, spec_.gaps, flows, from_ns, end_ns - from_ns);
    std::vector<std::uint64_t> starts_ns(flows);
    for (std::uint64_t &start_ns : starts_ns)
      start_ns = arrivals.next_ns();
    if (is_exact(spec_))
      leave_in_time(starts_ns, parts, from_ns, end_ns, bytes_per_ns);
    for (std::uint64_t i = 0; i < flows; i++)
      emit_({starts_ns[i], parts[i], destination(), kQuietClass});
  }

  std::vector<std::uint64_t> quiet_bytes(std::uint64_t bytes) {
    const Quiet quiet(static_cast<double>(bytes), sizes_.mean_bytes());
    std::vector<double> draws(is_exact(spec_) ? std::min(quiet.flows, bytes) : quiet.flows); // each of a byte at least
    for (double &draw : draws)
      draw = draw_bytes();
    if (is_exact(spec_))
      return split(bytes, draws);
    std::vector<std::uint64_t> parts;
    for (const double draw : draws)
      parts.push_back(whole_bytes(draw * quiet.scale));
    return parts;
  }

  // Starts the last flows of a period earlier if, at the burst's rate, they would otherwise last into the next burst.
  // The burst's volume would then be right in the file and wrong on the wire.
  static void leave_in_time(std::vector<std::uint64_t> &starts_ns, const std::vector<std::uint64_t> &parts,
                            std::uint64_t from_ns, std::uint64_t end_ns, double bytes_per_ns) {
    double bytes_to_come = 0;
    for (std::size_t i = starts_ns.size(); i-- > 0;) {
      bytes_to_come += static_cast<double>(parts[i]);
      const auto time_ns = static_cast<std::uint64_t>(std::ceil(bytes_to_come / bytes_per_ns));
      starts_ns[i] = std::min(starts_ns[i], end_ns - std::min(time_ns, end_ns - from_ns));
    }
  }

  double draw_bytes() { return sizes_.quantile_bytes(size_random_.uniform()); }
  std::uint16_t destination() {
    return static_cast<std::uint16_t>(destination_random_.below(spec_.destinations.size()));
  }

  const PlanSpec &spec_;
  const Sizes &sizes_;
  const Emit &emit_;
  Random gap_random_{spec_.seed, kGapStream};
  Random size_random_{spec_.seed, kSizeStream};
  Random destination_random_{spec_.seed, kDestinationStream};
  Random burst_random_{spec_.seed, kBurstStream};
};

std::string shown(double number) {
  std::string text = std::to_string(number);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

void check_flows(const PlanSpec &spec, const Sizes &sizes) {
  const double volume = volume_bytes(spec, spec.duration_ns);
  const bool is_checkpoint = spec.kind == Kind::kCheckpoint;
  const auto parts = static_cast<double>(is_checkpoint ? spec.destinations.size() : 1);
  const double flows = parts * volume / sizes.mean_bytes();
  if (whole_times(spec, sizes) < 1 && !spec.burst)
    throw native::Failure(std::string("expected a load that holds at least one ") +
                          (is_checkpoint ? "checkpoint" : "flow of the mean size") + ", " + shown(sizes.mean_bytes()) +
                          " bytes, found " + shown(volume) + " bytes in all");
  if (is_checkpoint && sizes.mean_bytes() < parts)
    throw native::Failure("expected a byte of a checkpoint for each of " + shown(parts) + " destinations, found " +
                          shown(sizes.mean_bytes()) + " bytes");
  if (flows > kMaxFlows)
    throw native::Failure("expected at most 10^9 flows, found " + shown(flows));
}

void check_burst(const PlanSpec &spec) {
  const Burst &burst = *spec.burst;
  if (burst.width_ns >= burst.period_ns)
    throw native::Failure("expected a burst shorter than its period, " + std::to_string(burst.period_ns) +
                          " ns, found " + std::to_string(burst.width_ns) + " ns");
  if (burst.share() >= 1)
    throw native::Failure("expected a burst's width times its height to be less than its period, found " +
                          shown(burst.share()) + " times it");
  // With a lower height, the rate between bursts would exceed the burst's rate.
  if (burst.height < 1)
    throw native::Failure("expected a burst's height of at least 1, found " + shown(burst.height));
  if (spec.duration_ns % burst.period_ns != 0)
    throw native::Failure("expected a duration that is a multiple of the burst period, " +
                          std::to_string(burst.period_ns) + " ns, found " + std::to_string(spec.duration_ns) + " ns");
  const double volume = volume_bytes(spec, burst.period_ns);
  // Each flow of a burst and of a quiet part needs a byte, and each part one more for rounding.
  const double least = std::max({3 / burst.share(), (kMinQuietFlows + 1) / (1 - burst.share()), 1e3});
  if (volume < least)
    throw native::Failure("expected a load of at least " + shown(least) + " bytes a period, found " + shown(volume));
}

} // namespace

std::vector<std::uint64_t> split(std::uint64_t total, const std::vector<double> &weights) {
  double sum = 0;
  for (const double weight : weights)
    sum += weight;
  const auto spare = static_cast<double>(total - weights.size());
  std::vector<std::uint64_t> parts;
  std::uint64_t given = 0;
  double until = 0;
  for (const double weight : weights) {
    until += weight;
    const auto due =
        parts.size() + 1 == weights.size() ? total - weights.size() : static_cast<std::uint64_t>(spare * (until / sum));
    parts.push_back(1 + due - given);
    given = due;
  }
  return parts;
}

LoadHeader plan_header(const PlanSpec &spec, const Sizes &sizes) {
  check_flows(spec, sizes);
  if (spec.burst)
    check_burst(spec);
  LoadHeader header{spec.duration_ns, spec.destinations, {kind_name(spec.kind)}, {}};
  header.plan = {{"kind", spec.burst ? "burst" : kind_name(spec.kind)},
                 {"asked_gbps", spec.load_gbps},
                 {"seed", spec.seed},
                 {"gaps", spec.gaps == Gaps::kPoissonProcess ? "poisson-process" : "poisson-distributed"},
                 {"mean_bytes", sizes.mean_bytes()},
                 {"expected_gbps", expected_gbps(spec, sizes)},
                 {"offered_gbps_standard_error", standard_error_gbps(spec, sizes)}};
  if (spec.kind == Kind::kCheckpoint)
    header.plan["checkpoint_period_ns"] = checkpoint_period_ns(spec, sizes);
  if (spec.burst) {
    header.classes = {"burst", "quiet"};
    header.plan["bursts"] = spec.duration_ns / spec.burst->period_ns;
    header.plan["burst_width_ns"] = spec.burst->width_ns;
    header.plan["burst_period_ns"] = spec.burst->period_ns;
    header.plan["burst_height"] = spec.burst->height;
    header.plan["volumes"] = spec.burst->volumes == Volumes::kDrawn ? "drawn" : "exact";
  }
  return header;
}

void plan(const PlanSpec &spec, const Sizes &sizes, const Emit &emit) {
  Planner planner(spec, sizes, emit);
  if (spec.burst)
    planner.bursts();
  else if (spec.kind == Kind::kCheckpoint)
    planner.checkpoints();
  else
    planner.consistent();
}

} // namespace crossgen
