// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/edge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fluid {
double Timetable::delay_ms(double at_ms) const {
  double early_ms = std::fmod(shift_ms - at_ms, period_ms);
  if (early_ms < 0)
    early_ms += period_ms;
  return threshold_ms < early_ms && early_ms < period_ms - late_ms ? early_ms : 0;
}

double Plan::bytes() const {
  double sum = 0;
  for (const Phase &phase : phases)
    for (const Stream &stream : phase.streams)
      sum += stream.size;
  return sum;
}

// --- streams ---------------------------------------------------------------------------------------------------------

double Flow::drained_ms() const {
  const double drain = rate - inflow();
  return waiting > 0 && drain > 0 ? waiting / drain : kInfinity;
}

double Flow::narrowest() const {
  double capacity = kInfinity;
  for (const Hop *hop = hops; hop != hops_end; hop++)
    capacity = std::min(capacity, hop->edge->capacity);
  return capacity;
}

void Flow::advance(double ms) {
  const double born = born_ms();
  // Streams within a host have no backlog. A backlog that drains within kSameMs is a rounding error.
  const bool waits = hops != hops_end && drained_ms() > ms + kSameMs;
  waiting = waits ? std::max(waiting + (inflow() - rate) * ms, 0.0) : 0;
  if (!feeder && begun)
    unborn = born <= ms + kSameMs ? 0 : unborn - pace * ms;
}

Sending::Sending(Job &job, const Phase &own) : phase(own), flows(own.streams.size()), left(own.parties.size()) {
  std::size_t all = 0;
  for (const Stream &stream : phase.streams)
    all += stream.path.size();
  hops.resize(all);
  entered.resize(index(job.plan.workers));
  Hop *next = hops.data();
  for (std::size_t i = 0; i < flows.size(); i++) {
    const Stream &stream = phase.streams[i];
    Flow &flow = flows[i];
    flow.job = &job;
    flow.pace = stream.size / phase.ms;
    flow.hops = next;
    for (Edge *edge : stream.path)
      *next++ = {&flow, edge};
    flow.hops_end = next;
    flow.path_capacity = flow.narrowest();
    if (stream.passes_on >= 0) {
      flow.feeder = &flows[index(stream.passes_on)];
      flow.next_follower = std::exchange(flow.feeder->first_follower, &flow);
    }
  }
}

void Sending::begin(std::int64_t number, Tally *tally) {
  iteration = number;
  parties = left.size();
  std::ranges::fill(entered, 0);
  std::ranges::fill(left, 0);
  for (std::size_t i = 0; i < flows.size(); i++) {
    Flow &flow = flows[i];
    flow.tally = tally;
    flow.unborn = phase.streams[i].size;
    flow.waiting = flow.rate = 0;
    flow.begun = flow.lags = false;
  }
}

void Sending::enter(int worker) {
  entered[index(worker)] = 1;
  for (std::size_t i = 0; i < flows.size(); i++)
    if (phase.streams[i].sender == worker)
      flows[i].begun = true;
}

bool Sending::is_done(const Party &party) const {
  return std::ranges::all_of(party.awaits, [this](int place) {
    const Flow &flow = flows[index(place)];
    return flow.begun && flow.done() && entered[index(phase.streams[index(place)].receiver)];
  });
}

// --- jobs ------------------------------------------------------------------------------------------------------------

Job::Job(Plan own, std::size_t place, double now)
    : plan(std::move(own)), bytes(plan.bytes()), number(place),
      workers_(index(plan.workers), Worker{plan.start_ms, plan.start_ms}), free_(plan.phases.size()), at_(now),
      departs_(plan.departs_ms) {}

double Job::weight(const Tally &tally, double more) const {
  return plan.grows ? plan.weight * plan.factor(std::clamp((tally.sent + more) / bytes, 0.0, 1.0)) : plan.weight;
}

double Job::next_ms() const {
  if (ended_)
    return kInfinity;
  double next = departs_, flows = kInfinity;
  for (const Worker &worker : workers_)
    next = std::min(next, worker.until);
  for (const Sending *sending : sending_)
    for (const Flow &flow : sending->flows)
      flows = std::min(flows, flow.next_ms());
  return std::min(next, at_ + flows);
}

void Job::advance(double now) {
  const double ms = now - std::exchange(at_, now);
  for (Sending *sending : sending_) {
    for (Flow &flow : sending->flows)
      flow.tally->sent += flow.rate * ms;
    // A flow reads its feeder's state before the feeder advances. Feeders come first, so go from the last to the first.
    for (std::size_t i = sending->flows.size(); i-- > 0;)
      sending->flows[i].advance(ms);
    for (Flow &flow : sending->flows)
      if (flow.done())
        flow.rate = 0;
  }
}

// Moves workers whose phase is over to the next phase, and ends the job after its last iteration or at its departure.
void Job::settle(double now) {
  for (bool moved = true; moved && !ended_;) {
    moved = false;
    for (int worker = 0; worker < plan.workers; worker++)
      if (workers_[index(worker)].until <= now + kSameMs) {
        enter_next(worker, now);
        moved = true;
      }
    for (std::size_t i = 0; i < sending_.size(); i++) {
      Sending &sending = *sending_[i];
      for (std::size_t party = 0; party < sending.left.size(); party++) {
        if (sending.left[party] || !sending.is_done(sending.phase.parties[party]))
          continue;
        sending.left[party] = 1;
        sending.parties--;
        moved = true;
        for (const int worker : sending.phase.parties[party].workers)
          enter_next(worker, now);
      }
      if (sending.parties == 0) {
        retired.push_back(&sending);
        sending_.erase(sending_.begin() + static_cast<std::ptrdiff_t>(i--));
      }
    }
    ended_ = completed_ >= plan.iterations;
  }
  ended_ = ended_ || now + kSameMs >= departs_;
  if (ended_) {
    retired.insert(retired.end(), sending_.begin(), sending_.end());
    sending_.clear();
  }
}

void Job::enter_next(int place, double now) {
  Worker &worker = workers_[index(place)];
  for (;;) {
    if (++worker.phase == static_cast<int>(plan.phases.size()))
      end_iteration(worker, now);
    if (worker.begun >= plan.iterations)
      worker.until = kInfinity;
    if (worker.begun >= plan.iterations || worker.phase < 0)
      return;
    const Phase &phase = plan.phases[index(worker.phase)];
    if (!phase.sends) {
      worker.until = now + phase.ms * plan.stretches[index(worker.begun) % plan.stretches.size()];
      return;
    }
    const bool takes_part = std::ranges::any_of(phase.parties, [place](const Party &party) {
      return std::ranges::find(party.workers, place) != party.workers.end();
    });
    if (takes_part) {
      worker.until = kInfinity;
      if (worker.compute_end < 0)
        worker.compute_end = now;
      sending_of(worker.begun, worker.phase).enter(place);
      return;
    }
  }
}

void Job::end_iteration(Worker &worker, double now) {
  const double compute_end = worker.compute_end < 0 ? now : worker.compute_end;
  worker.records.insert(worker.records.end(), {worker.started, compute_end, now, worker.delay});
  worker.begun++;
  worker.delay = plan.held ? plan.timetable.delay_ms(now) : 0;
  worker.started = now;
  worker.compute_end = -1;
  worker.phase = worker.delay > 0 ? -1 : 0;
  worker.until = now + worker.delay;
  completed_ = std::ranges::min(workers_, {}, &Worker::begun).begun;
  for (std::size_t i = tallies_.size(); i-- > 0;)
    if (tallies_[i]->iteration < completed_) {
      free_tallies_.push_back(std::move(tallies_[i]));
      tallies_.erase(tallies_.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

Tally *Job::tally_of(std::int64_t iteration) {
  for (const auto &tally : tallies_)
    if (tally->iteration == iteration)
      return tally.get();
  if (free_tallies_.empty())
    free_tallies_.push_back(std::make_unique<Tally>());
  tallies_.push_back(std::move(free_tallies_.back()));
  free_tallies_.pop_back();
  *tallies_.back() = {iteration, 0};
  return tallies_.back().get();
}

Sending &Job::sending_of(std::int64_t iteration, int place) {
  const Phase &phase = plan.phases[index(place)];
  for (Sending *sending : sending_)
    if (sending->iteration == iteration && &sending->phase == &phase)
      return *sending;
  auto &spare = free_[index(place)];
  if (spare.empty()) {
    all_.push_back(std::make_unique<Sending>(*this, phase));
    spare.push_back(all_.back().get());
  }
  Sending *sending = spare.back();
  spare.pop_back();
  sending->begin(iteration, tally_of(iteration));
  sending_.push_back(sending);
  return *sending;
}

void Job::recycle() {
  for (Sending *sending : retired)
    free_[index(&sending->phase - plan.phases.data())].push_back(sending);
  retired.clear();
  if (ended_) {
    free_.clear();
    all_.clear();
  }
}

} // namespace fluid
