// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/edge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fluid {
namespace {

constexpr double kUnset = -1; // end of computing before an iteration's first communication

} // namespace

double Plan::factor_at(double r) const {
  return (factor.constant + r * (factor.linear + r * factor.square)) / (factor.below + r * factor.below_linear);
}

double Plan::delay_ms(double at_ms) const {
  if (!has_timetable)
    return 0;
  double early_ms = std::fmod(timetable.shift_ms - at_ms, timetable.period_ms);
  if (early_ms < 0)
    early_ms += timetable.period_ms;
  return timetable.threshold_ms < early_ms && early_ms < timetable.period_ms - timetable.late_ms ? early_ms : 0;
}

double Plan::iteration_bytes() const {
  double sum = 0;
  for (const Phase &phase : phases)
    for (const Stream &stream : phase.streams)
      sum += stream.bytes;
  return sum;
}

// --- streams ---------------------------------------------------------------------------------------------------------

double Flow::drained_ms() const {
  const double drain = rate - inflow();
  return waiting > 0 && drain > 0 ? waiting / drain : kInfinity;
}

double Flow::narrowest_capacity() const {
  double capacity = kInfinity;
  for (const Hop *hop = hops; hop != hops_end; hop++)
    capacity = std::min(capacity, hop->edge->capacity / hop->share);
  return capacity;
}

void Flow::advance(double ms) {
  const double produced = produced_ms();
  // Streams within a host have no backlog. A backlog that drains within kEqualMs is a rounding error.
  const bool waits = hops != hops_end && drained_ms() > ms + kEqualMs;
  waiting = waits ? std::max(waiting + (inflow() - rate) * ms, 0.0) : 0;
  if (!feeder && has_begun)
    unproduced = produced <= ms + kEqualMs ? 0 : unproduced - pace * ms;
}

ActivePhase::ActivePhase(Job &job, const Phase &own)
    : phase(own), flows(own.streams.size()), is_released(own.barriers.size()) {
  entered.resize(index(job.plan.workers));
  for (std::size_t i = 0; i < flows.size(); i++) {
    const Stream &stream = phase.streams[i];
    Flow &flow = flows[i];
    flow.job = &job;
    flow.pace = stream.bytes / phase.ms;
    flow.hash = (static_cast<std::uint64_t>(job.number) << 32) + i;
    if (stream.passes_on >= 0) {
      flow.feeder = &flows[index(stream.passes_on)];
      flow.next_follower = std::exchange(flow.feeder->first_follower, &flow);
    }
  }
  lay_paths();
}

void ActivePhase::lay_paths() {
  std::size_t all = 0;
  for (const Stream &stream : phase.streams)
    all += stream.path.size();
  hops.resize(all);
  Hop *next = hops.data();
  for (std::size_t i = 0; i < flows.size(); i++) {
    Flow &flow = flows[i];
    flow.hops = next;
    for (const StreamLink &link : phase.streams[i].path)
      *next++ = {&flow, link.edge, link.share};
    flow.hops_end = next;
    flow.path_capacity = flow.narrowest_capacity();
  }
}

void ActivePhase::begin(std::int64_t number, SentBytes *sent) {
  iteration = number;
  unreleased = is_released.size();
  std::ranges::fill(entered, 0);
  std::ranges::fill(is_released, 0);
  for (std::size_t i = 0; i < flows.size(); i++) {
    Flow &flow = flows[i];
    flow.sent = sent;
    flow.unproduced = phase.streams[i].bytes;
    flow.waiting = flow.rate = 0;
    flow.has_begun = flow.builds_backlog = false;
  }
}

void ActivePhase::enter(int worker) {
  entered[index(worker)] = 1;
  for (std::size_t i = 0; i < flows.size(); i++)
    if (phase.streams[i].sender == worker)
      flows[i].has_begun = true;
}

bool ActivePhase::is_done(const Barrier &barrier) const {
  return std::ranges::all_of(barrier.awaits, [this](int place) {
    const Flow &flow = flows[index(place)];
    return flow.has_begun && flow.is_done() && entered[index(phase.streams[index(place)].receiver)];
  });
}

// --- jobs ------------------------------------------------------------------------------------------------------------

Job::Job(Plan own, std::size_t place, double now)
    : plan(std::move(own)), iteration_bytes(plan.iteration_bytes()), number(place),
      workers_(index(plan.workers), Worker{plan.start_ms, {plan.start_ms, kUnset, 0, 0}}),
      idle_phases_(plan.phases.size()), advanced_to_(now), departs_ms_(plan.departs_ms) {}

double Job::weight(const SentBytes &sent, double more) const {
  return plan.has_factor ? plan.weight * plan.factor_at(std::clamp((sent.bytes + more) / iteration_bytes, 0.0, 1.0))
                         : plan.weight;
}

double Job::next_ms() const {
  if (ended_)
    return kInfinity;
  double next = departs_ms_, flows = kInfinity;
  for (const Worker &worker : workers_)
    next = std::min(next, worker.until_ms);
  for (const ActivePhase *active : active_phases_)
    for (const Flow &flow : active->flows)
      flows = std::min(flows, flow.next_ms());
  return std::min(next, advanced_to_ + flows);
}

void Job::advance(double now) {
  const double ms = now - std::exchange(advanced_to_, now);
  for (ActivePhase *active : active_phases_) {
    for (Flow &flow : active->flows)
      flow.sent->bytes += flow.rate * ms;
    // A flow reads its feeder's state before the feeder advances. Feeders come first, so go from the last to the first.
    for (std::size_t i = active->flows.size(); i-- > 0;)
      active->flows[i].advance(ms);
    for (Flow &flow : active->flows)
      if (flow.is_done())
        flow.rate = 0;
  }
}

// Moves workers whose phase is over to the next phase, and ends the job after its last iteration or at its departure.
void Job::enter_next_phases(double now) {
  for (bool moved = true; moved && !ended_;) {
    moved = false;
    for (int worker = 0; worker < plan.workers; worker++)
      if (workers_[index(worker)].until_ms <= now + kEqualMs) {
        enter_next_phase(worker, now);
        moved = true;
      }
    for (std::size_t i = 0; i < active_phases_.size(); i++) {
      ActivePhase &active = *active_phases_[i];
      for (std::size_t barrier = 0; barrier < active.is_released.size(); barrier++) {
        if (active.is_released[barrier] || !active.is_done(active.phase.barriers[barrier]))
          continue;
        active.is_released[barrier] = 1;
        active.unreleased--;
        moved = true;
        for (const int worker : active.phase.barriers[barrier].workers)
          enter_next_phase(worker, now);
      }
      if (active.unreleased == 0) {
        ended_phases.push_back(&active);
        active_phases_.erase(active_phases_.begin() + static_cast<std::ptrdiff_t>(i--));
      }
    }
    ended_ = completed_ >= plan.iterations;
  }
  ended_ = ended_ || now + kEqualMs >= departs_ms_;
  if (ended_) {
    ended_phases.insert(ended_phases.end(), active_phases_.begin(), active_phases_.end());
    active_phases_.clear();
  }
}

void Job::reroute(std::vector<std::vector<StreamLink>> paths) {
  auto next = paths.begin();
  for (Phase &phase : plan.phases)
    for (Stream &stream : phase.streams)
      stream.path = std::move(*next++);
  for (const auto &active : phases_)
    active->lay_paths();
}

void Job::adopt_next_phases() {
  replaced_.push_back(std::exchange(plan.phases, std::move(next_phases_)));
  next_phases_.clear();
  for (auto &active : phases_) {
    active->is_stale = true;
    stale_phases_.push_back(std::move(active));
  }
  phases_.clear();
  for (auto &idle : idle_phases_)
    idle.clear();
}

void Job::enter_next_phase(int place, double now) {
  Worker &worker = workers_[index(place)];
  // Workers that leave phases one by one are all at the same place only as an iteration ends.
  if (!next_phases_.empty() && (plan.workers == 1 || worker.phase + 1 == static_cast<int>(plan.phases.size())))
    adopt_next_phases();
  for (;;) {
    if (++worker.phase == static_cast<int>(plan.phases.size()))
      end_iteration(worker, now);
    if (worker.completed() >= plan.iterations)
      worker.until_ms = kInfinity;
    if (worker.completed() >= plan.iterations || worker.phase < 0)
      return;
    const Phase &phase = plan.phases[index(worker.phase)];
    if (!phase.sends) {
      worker.until_ms = now + phase.ms * plan.stretches[index(worker.completed()) % plan.stretches.size()];
      return;
    }
    const bool takes_part = std::ranges::any_of(phase.barriers, [place](const Barrier &barrier) {
      return std::ranges::find(barrier.workers, place) != barrier.workers.end();
    });
    if (takes_part) {
      worker.until_ms = kInfinity;
      if (worker.iteration.compute_end_ms == kUnset)
        worker.iteration.compute_end_ms = now;
      active_phase_of(worker.completed(), worker.phase).enter(place);
      return;
    }
  }
}

void Job::end_iteration(Worker &worker, double now) {
  worker.iteration.end_ms = now;
  if (worker.iteration.compute_end_ms == kUnset)
    worker.iteration.compute_end_ms = now;
  worker.iterations.push_back(worker.iteration);
  const double delay_ms = plan.delay_ms(now);
  worker.iteration = {now, kUnset, 0, delay_ms};
  worker.phase = delay_ms > 0 ? -1 : 0;
  worker.until_ms = now + delay_ms;
  completed_ = std::ranges::min(workers_, {}, &Worker::completed).completed();
  for (std::size_t i = sent_bytes_.size(); i-- > 0;)
    if (sent_bytes_[i]->iteration < completed_) {
      free_sent_bytes_.push_back(std::move(sent_bytes_[i]));
      sent_bytes_.erase(sent_bytes_.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

SentBytes *Job::sent_bytes_of(std::int64_t iteration) {
  for (const auto &sent : sent_bytes_)
    if (sent->iteration == iteration)
      return sent.get();
  if (free_sent_bytes_.empty())
    free_sent_bytes_.push_back(std::make_unique<SentBytes>());
  sent_bytes_.push_back(std::move(free_sent_bytes_.back()));
  free_sent_bytes_.pop_back();
  *sent_bytes_.back() = {iteration, 0};
  return sent_bytes_.back().get();
}

ActivePhase &Job::active_phase_of(std::int64_t iteration, int place) {
  const Phase &phase = plan.phases[index(place)];
  for (ActivePhase *active : active_phases_)
    if (active->iteration == iteration && &active->phase == &phase)
      return *active;
  auto &spare = idle_phases_[index(place)];
  if (spare.empty()) {
    phases_.push_back(std::make_unique<ActivePhase>(*this, phase));
    spare.push_back(phases_.back().get());
  }
  ActivePhase *active = spare.back();
  spare.pop_back();
  active->begin(iteration, sent_bytes_of(iteration));
  active_phases_.push_back(active);
  return *active;
}

void Job::reuse_ended_phases() {
  for (ActivePhase *active : ended_phases)
    if (!active->is_stale)
      idle_phases_[index(&active->phase - plan.phases.data())].push_back(active);
  ended_phases.clear();
  stale_phases_.clear();
  replaced_.clear();
  if (ended_) {
    idle_phases_.clear();
    phases_.clear();
  }
}

} // namespace fluid
