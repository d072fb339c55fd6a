// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/jobs/jobs.hpp"

#include "roundabout/models/packets/native/cross_traffic/cross_traffic.hpp"

#include <algorithm>
#include <cmath>

namespace packets {

namespace {

// Returns how long an iteration that could begin at `at` waits for the job's timetable.
Picos delay(const job_plan &plan, Picos at) {
  if (plan.period_ps <= 0)
    return 0;
  Picos early = (plan.shift_ps - at) % plan.period_ps;
  if (early < 0)
    early += plan.period_ps;
  return plan.threshold_ps < early && early < plan.period_ps - plan.late_ps ? early : 0;
}

} // namespace

std::uint32_t Jobs::add_job(const job_plan &plan, std::span<const double> stretches) {
  Job job;
  job.plan = plan;
  job.stretches.assign(stretches.begin(), stretches.end());
  job.first_worker = static_cast<std::uint32_t>(workers_.size());
  job.working = static_cast<std::uint32_t>(plan.workers);
  const auto index = static_cast<std::uint32_t>(jobs_.size());
  for (std::uint32_t i = 0; i < job.working; i++) {
    Worker worker;
    worker.job = index;
    worker.started = plan.begins_ps;
    workers_.push_back(std::move(worker));
  }
  jobs_.push_back(std::move(job));
  running_++;
  return index;
}

void Jobs::add_phase(std::uint32_t index, Picos length, bool sends) {
  Job &job = jobs_[index];
  job.phases.push_back({length, sends, {}});
  for (std::uint32_t i = 0; i < job.plan.workers; i++) {
    workers_[job.first_worker + i].out.emplace_back();
    workers_[job.first_worker + i].in.emplace_back();
  }
}

void Jobs::add_message(std::uint32_t index, std::uint32_t pair, std::uint32_t sender, std::uint32_t receiver,
                       Bytes bytes, Bytes lead, std::span<const std::uint32_t> feeders) {
  Job &job = jobs_[index];
  if (pair_bytes_.size() <= pair)
    pair_bytes_.resize(pair + 1);
  if (hosts_.pairs[pair].sender == kNone) // It is the pair's first message.
    job.pairs.push_back(pair);
  hosts_.pairs[pair].sender = job.first_worker + sender;
  hosts_.pairs[pair].receiver = job.first_worker + receiver;
  Phase &phase = job.phases.back();
  const auto place = static_cast<std::uint32_t>(phase.messages.size());
  phase.messages.push_back({pair, bytes, pair_bytes_[pair], lead, {feeders.begin(), feeders.end()}});
  pair_bytes_[pair] += bytes;
  workers_[job.first_worker + sender].out.back().push_back(place);
  workers_[job.first_worker + receiver].in.back().push_back(place);
}

void Jobs::begin() {
  for (std::uint32_t i = 0; i < workers_.size(); i++)
    events_.set({EventKind::kWorker, i}, jobs_[workers_[i].job].plan.begins_ps);
  for (std::uint32_t i = 0; i < jobs_.size(); i++)
    events_.set({EventKind::kDeparture, i}, jobs_[i].plan.departs_ps);
}

void Jobs::message_taken(const QueuePair &pair, Picos now) {
  if (pair.sender == kNone)
    cross_traffic_.message_taken(hosts_.index_of(pair), now);
  else
    settle(pair.sender, now);
}

void Jobs::message_received(const QueuePair &pair, Picos now) {
  if (pair.receiver == kNone)
    cross_traffic_.message_received(hosts_.index_of(pair), now);
  else
    settle(pair.receiver, now);
}

void Jobs::settle(std::uint32_t index, Picos now) {
  Worker &worker = workers_[index];
  if (!jobs_[worker.job].ended && --worker.pending == 0)
    enter_next_phase(index, now);
}

// Goes on to the next phase in which the worker takes part.
void Jobs::enter_next_phase(std::uint32_t index, Picos now) {
  Worker &worker = workers_[index];
  const Job &job = jobs_[worker.job];
  while (!job.ended) {
    if (++worker.phase == static_cast<int>(job.phases.size())) {
      end_iteration(index, now);
      return;
    }
    const auto place = static_cast<std::size_t>(worker.phase);
    const Phase &phase = job.phases[place];
    if (!phase.sends) {
      const auto &stretches = job.stretches;
      const double stretch = stretches[static_cast<std::size_t>(worker.iteration) % stretches.size()];
      events_.set({EventKind::kWorker, index},
                  now + static_cast<Picos>(std::llround(static_cast<double>(phase.length) * stretch)));
      return;
    }
    if (!worker.out[place].empty() || !worker.in[place].empty()) {
      if (worker.compute_end < 0)
        worker.compute_end = now;
      enter_sending(index, now);
      return;
    }
  }
}

Bytes Jobs::begin_of(const Message &message, std::int64_t iteration) const {
  return iteration * pair_bytes_[message.pair] + message.offset;
}

void Jobs::enter_sending(std::uint32_t index, Picos now) {
  Worker &worker = workers_[index];
  const Job &job = jobs_[worker.job];
  const auto place = static_cast<std::size_t>(worker.phase);
  const Phase &phase = job.phases[place];
  // One more than there are messages, so that none ends the phase while others are not posted yet.
  worker.pending = 1 + static_cast<int>(worker.out[place].size());
  for (const std::uint32_t each : worker.in[place]) {
    const Message &message = phase.messages[each];
    QueuePair &pair = hosts_.pairs[message.pair];
    pair.followers.clear();
    const bool was_done = pair.is_done();
    pair.awaited = begin_of(message, worker.iteration) + message.bytes;
    worker.pending += pair.expected < pair.awaited;
    if (!was_done && pair.is_done()) // its sender only waited for this worker to come
      settle(pair.sender, now);
  }
  for (const std::uint32_t each : worker.out[place]) {
    const Message &message = phase.messages[each];
    QueuePair &pair = hosts_.pairs[message.pair];
    pair.lead = message.lead;
    pair.feeders.clear();
    for (const std::uint32_t fed_by : message.feeders) {
      const Message &feeder = phase.messages[fed_by];
      pair.feeders.push_back({feeder.pair, begin_of(feeder, worker.iteration), feeder.bytes});
      hosts_.pairs[feeder.pair].followers.push_back(message.pair);
    }
    const Bytes begin = begin_of(message, worker.iteration);
    hosts_.post(message.pair, begin, begin + message.bytes, phase.length, now);
  }
  settle(index, now);
}

void Jobs::end_iteration(std::uint32_t index, Picos now) {
  Worker &worker = workers_[index];
  Job &job = jobs_[worker.job];
  worker.records.push_back({worker.started, worker.compute_end < 0 ? now : worker.compute_end, now, worker.delay});
  worker.iteration++;
  worker.phase = -1;
  worker.compute_end = -1;
  worker.started = now;
  if (worker.iteration >= job.plan.iterations) {
    if (--job.working == 0)
      end(worker.job, now);
    return;
  }
  worker.delay = delay(job.plan, now);
  events_.set({EventKind::kWorker, index}, now + worker.delay);
}

void Jobs::end(std::uint32_t index, Picos now) {
  Job &job = jobs_[index];
  if (job.ended)
    return;
  job.ended = true;
  running_--;
  last_end_ = std::max(last_end_, now);
  for (const std::uint32_t pair : job.pairs)
    hosts_.stop(pair);
  for (std::uint32_t i = 0; i < job.plan.workers; i++)
    events_.cancel({EventKind::kWorker, job.first_worker + i});
  events_.cancel({EventKind::kDeparture, index});
}

std::int64_t Jobs::completed(std::uint32_t index) const {
  const Job &job = jobs_[index];
  std::int64_t least = job.plan.iterations;
  for (std::uint32_t i = 0; i < job.plan.workers; i++)
    least = std::min(least, workers_[job.first_worker + i].iteration);
  return least;
}

const std::vector<iteration_record> &Jobs::records(std::uint32_t job, std::uint32_t rank) const {
  return workers_[jobs_[job].first_worker + rank].records;
}

} // namespace packets
