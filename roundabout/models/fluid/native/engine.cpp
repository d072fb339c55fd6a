// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fluid {
namespace {

// Units of the smallest capacity, 2^36: sums of up to 2^27 times this capacity fit 63 bits.
constexpr double kUnits = 68719476736;

template <typename Each> std::size_t place_of(std::vector<Each> &all, const Each &one) {
  const auto found = std::ranges::find(all, one);
  const auto place = static_cast<std::size_t>(found - all.begin());
  if (found == all.end())
    all.push_back(one);
  return place;
}

// Returns true if the flow has no backlog, so that it can send only what its feeder delivers.
bool passes_on(const Flow &flow) { return flow.feeder && flow.feeder->listed && flow.waiting <= 0 && !flow.lags; }

} // namespace

Engine::Engine(const std::vector<std::vector<double>> &capacities, double step_ms, double congested, double sample_ms)
    : carried_(capacities.size()), congested_(congested), sample_ms_(sample_ms), step_ms_(step_ms) {
  double least = kInfinity;
  for (const auto &each : capacities) {
    edges_.emplace_back(each[0]);
    if (const double most = std::ranges::max(each); most > 0)
      least = std::min(least, most);
  }
  units_per_rate_ = kUnits / least;
  for (std::size_t i = 0; i < edges_.size(); i++) {
    edges_[i].limit_units = units(edges_[i].capacity);
    if (capacities[i].size() > 1)
      stepping_.push_back({&edges_[i], capacities[i]});
    steps_ = std::max(steps_, capacities[i].size());
  }
  if (steps_ > 1)
    changes_ms_ = step_ms_;
}

std::int64_t Engine::units(double bytes_per_ms) const { return std::llround(bytes_per_ms * units_per_rate_); }

std::size_t Engine::add(Plan plan) {
  jobs_.push_back(std::make_unique<Job>(std::move(plan), jobs_.size(), now_));
  Job &job = *jobs_.back();
  job.heap_place = heap_.size();
  heap_.push_back(&job);
  reposition(job);
  return job.number;
}

void Engine::stop(std::size_t job) {
  jobs_[job]->depart(now_);
  to_update_.push_back(jobs_[job].get());
  process_instant();
}

std::vector<std::size_t> Engine::run(double until_ms, std::int64_t &instants) {
  std::vector<std::size_t> ended;
  for (; ended.empty() && instants > 0; instants--) {
    const double next_ms = std::min(heap_.empty() ? kInfinity : heap_.front()->key, changes_ms_);
    if (next_ms > until_ms || next_ms == kInfinity) {
      now_ = until_ms < kInfinity ? std::max(now_, until_ms) : now_;
      break;
    }
    now_ = std::max(now_, next_ms);
    if (changes_ms_ <= now_ + kSameMs)
      change_capacities();
    while (!heap_.empty() && heap_.front()->key <= now_ + kSameMs) {
      Job &due = *heap_.front();
      to_update_.push_back(&due);
      due.key = kInfinity; // set again at the end of this instant
      reposition(due);
    }
    process_instant();
    for (const Job *job : updated_)
      if (job->ended())
        ended.push_back(job->number);
  }
  std::ranges::sort(ended);
  return ended;
}

std::vector<double> Engine::carried(std::size_t number) {
  for (const auto &job : jobs_)
    if (!job->ended() && job->at() < now_)
      to_update_.push_back(job.get());
  process_instant();
  std::vector<double> until{0.0};
  const std::vector<double> &carried = carried_[number];
  const auto samples = static_cast<std::size_t>(now_ / sample_ms_ * kSame);
  for (std::size_t i = 0; i < samples; i++)
    until.push_back(until.back() + (i < carried.size() ? carried[i] : 0));
  return until;
}

std::vector<const Flow *> Engine::live() {
  std::vector<const Flow *> found;
  for (const auto &job : jobs_)
    job->each_flow([&found](const Flow &flow) {
      if (flow.listed)
        found.push_back(&flow);
    });
  return found;
}

// --- one instant -----------------------------------------------------------------------------------------------------
//
// Two streams are coupled if a change of one can change the other's rate: they share a tight link (the sum of the
// streams' bounds exceeds its limit), one feeds the other, or their common weight depends on the bytes that both sent.

// Advances the due jobs and all jobs coupled with them to `now`, then recomputes their rates and next events.
void Engine::process_instant() {
  instant_++;
  updated_.clear();
  recompute_rates();
  for (Job *job : updated_) {
    job->recycle();
    job->key = job->next_ms();
    for (const auto &growing : job->growing)
      job->key = std::min(job->key, growing->ends);
    reposition(*job);
  }
}

// Sets the capacities of the step that begins now.
void Engine::change_capacities() {
  const auto step = std::min(static_cast<std::size_t>((now_ + kSameMs) / step_ms_), steps_ - 1);
  changes_ms_ = step + 1 < steps_ ? static_cast<double>(step + 1) * step_ms_ : kInfinity;
  for (const auto &[edge, capacities] : stepping_) {
    const double capacity = capacities[std::min(step, capacities.size() - 1)];
    if (capacity == edge->capacity)
      continue;
    edge->capacity = edge->limit = capacity;
    edge->limit_units = units(capacity);
    update_edge(*edge, true);
    for (const Hop *hop = edge->first; hop; hop = hop->next)
      to_update_.push_back(hop->flow->job);
  }
}

void Engine::update_job(Job &job) {
  if (job.updated == instant_ || job.ended())
    return;
  job.updated = instant_;
  updated_.push_back(&job);
  while (!job.growing.empty())
    end_step(std::shared_ptr(job.growing.back()));
  if (sample_ms_ > 0)
    record_carried(job);
  job.advance(now_);
  job.settle(now_);
  for (Sending *sending : job.retired)
    for (Flow &flow : sending->flows)
      remove_from_links(flow);
  job.each_flow([this](Flow &flow) { update_demand(flow); });
}

// Ends an integration step now, before its planned end, and marks its jobs and flows for an update.
void Engine::end_step(const std::shared_ptr<Growing> &growing) {
  if (now_ > growing->begins && now_ < growing->ends)
    growing->set_means(now_ - growing->begins);
  for (Job *job : growing->jobs) {
    std::erase(job->growing, growing);
    to_update_.push_back(job);
  }
  for (Flow *flow : growing->flows)
    mark_dirty(*flow);
}

// Computes a stream's demand and the upper bound of its rate from its own state and its feeder's.
void Engine::update_demand(Flow &flow) {
  if (!flow.live())
    return remove_from_links(flow);
  const bool is_new = !std::exchange(flow.listed, true);
  if (is_new)
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
      hop->from = &hop->edge->first;
      hop->next = std::exchange(hop->edge->first, hop);
      if (hop->next)
        hop->next->from = &hop->next;
    }
  flow.lags = false;
  if (!stepping_.empty())
    flow.path_capacity = flow.narrowest();
  double wanted = kInfinity, bound = flow.path_capacity;
  if (flow.waiting <= 0) {
    const bool comes = flow.feeder && flow.feeder->listed;
    wanted = !flow.feeder ? flow.pace : comes ? flow.feeder->wanted : 0;
    bound = std::min({wanted, bound, comes ? flow.feeder->bound : kInfinity});
  }
  const bool followed = std::exchange(flow.follows, passes_on(flow));
  if (is_new || wanted != flow.wanted || bound != flow.bound || followed != flow.follows)
    set_demand(flow, wanted, bound, true);
}

void Engine::remove_from_links(Flow &flow) {
  flow.rate = 0;
  if (!std::exchange(flow.listed, false))
    return;
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    *hop->from = hop->next;
    if (hop->next)
      hop->next->from = hop->from;
    hop->edge->units -= flow.units;
    update_edge(*hop->edge, true);
  }
  flow.units = 0;
}

void Engine::set_demand(Flow &flow, double wanted, double bound, bool is_changed) {
  flow.wanted = wanted;
  flow.bound = bound;
  if (flow.hops != flow.hops_end) {
    const std::int64_t more = units(bound) - flow.units;
    flow.units += more;
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
      hop->edge->units += more;
      update_edge(*hop->edge, is_changed);
    }
  }
  if (is_changed)
    mark_dirty(flow);
}

// Updates a link's limit. Marks the link dirty if it couples its streams, and its limit changed or any of its streams
// started, ended or changed its demand (`streams`).
void Engine::update_edge(Edge &edge, bool streams) {
  const bool was_tight = edge.tight;
  const double had = edge.limit;
  if (congested_ != 1) {
    edge.limit = limit(edge);
    edge.limit_units = units(edge.limit);
  }
  edge.tight = edge.units > edge.limit_units;
  const bool couples = was_tight || edge.tight;
  if (couples && (streams || was_tight != edge.tight || had != edge.limit) && !std::exchange(edge.dirty, true))
    dirty_edges_.push_back(&edge);
}

double Engine::limit(const Edge &edge) const {
  double wanted = 0;
  for (const Hop *hop = edge.first; hop; hop = hop->next)
    wanted += hop->flow->wanted;
  return edge.first && edge.first->next && wanted > edge.capacity * kSame ? edge.capacity * congested_ : edge.capacity;
}

void Engine::mark_dirty(Flow &flow) {
  if (!std::exchange(flow.dirty, true))
    dirty_flows_.push_back(&flow);
}

// --- coupled flows ---------------------------------------------------------------------------------------------------

// Recomputes rates until no job, link or flow is left to update.
void Engine::recompute_rates() {
  do {
    while (!to_update_.empty() || !dirty_edges_.empty() || !dirty_flows_.empty()) {
      coupling_++;
      coupled_.clear();
      if (!to_update_.empty()) {
        Job &job = *to_update_.back();
        to_update_.pop_back();
        update_job(job);
        continue;
      }
      if (!dirty_edges_.empty()) {
        Edge &edge = *dirty_edges_.back();
        dirty_edges_.pop_back();
        if (edge.dirty)
          add_streams_of(edge);
      } else {
        Flow &flow = *dirty_flows_.back();
        dirty_flows_.pop_back();
        if (flow.dirty)
          add_coupled(flow);
      }
      collect_coupled();
      solve_coupled();
    }
  } while (!begin_steps());
}

// Adds every stream that is coupled with a stream already in the set.
void Engine::collect_coupled() {
  for (std::size_t i = 0; i < coupled_.size(); i++) {
    Flow &flow = *coupled_[i];
    update_job(*flow.job);
    flow.dirty = false;
    if (!flow.listed)
      continue;
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++)
      if (hop->edge->dirty || (hop->edge->tight && hop->edge->seen != coupling_))
        add_streams_of(*hop->edge);
    if (flow.feeder && flow.waiting <= 0)
      add_coupled(*flow.feeder);
    for (Flow *next = flow.first_follower; next; next = next->next_follower)
      if (next->waiting <= 0)
        add_coupled(*next);
    if (flow.job->plan.grows) // one weight for all streams of the job
      flow.job->each_flow([this](Flow &other) { add_coupled(other); });
  }
  std::erase_if(coupled_, [](const Flow *flow) { return !flow->listed; });
}

void Engine::add_streams_of(Edge &edge) {
  edge.dirty = false;
  edge.seen = coupling_;
  edge.local = -1;
  for (Hop *hop = edge.first; hop; hop = hop->next)
    add_coupled(*hop->flow);
}

void Engine::add_coupled(Flow &flow) {
  if (std::exchange(flow.seen, coupling_) == coupling_)
    return;
  flow.local = -1;
  coupled_.push_back(&flow);
}

// Computes the rates of the coupled set. A flow whose rate is less than its inflow builds a backlog from now on, and
// its demand becomes unlimited.
void Engine::solve_coupled() {
  shares_.clear();
  for (Flow *flow : coupled_)
    add_to_shares(*flow, shares_);
  if (shares_.links() > 0)
    shares_.solve();
  for (Flow *flow : coupled_)
    flow->rate = shares_.links() > 0 ? shares_.rate(static_cast<std::size_t>(flow->local)) : flow->bound;
  for (Flow *flow : coupled_)
    if (flow->waiting <= 0 && !flow->lags && flow->hops != flow->hops_end && flow->rate * kSame < flow->inflow())
      begin_backlog(*flow);
  if (shares_.links() > 0 && has_growing_weights())
    growing_sets_.emplace_back(coupling_, coupled_);
}

int Engine::add_to_shares(Flow &flow, Shares &shares) {
  if (flow.local >= 0)
    return flow.local;
  const int first = passes_on(flow) ? add_to_shares(*flow.feeder, shares) : -1;
  flow.local = shares.add_flow(flow.bound, flow.job->weight(*flow.tally), flow.job->plan.priority, first);
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    Edge &edge = *hop->edge;
    if (!edge.tight || edge.seen != coupling_)
      continue; // a link that became tight just now is dirty, so the set is solved again
    if (edge.local < 0)
      edge.local = shares.add_link(edge.limit);
    shares.add_hop(edge.local);
  }
  return flow.local;
}

void Engine::begin_backlog(Flow &flow) {
  flow.lags = true;
  set_demand(flow, kInfinity, flow.path_capacity, false);
  const auto pass = [this](const auto &self, Flow &from) -> void {
    for (Flow *next = from.first_follower; next; next = next->next_follower)
      if (next->listed && passes_on(*next)) {
        set_demand(*next, from.wanted, std::min(from.bound, next->path_capacity), false);
        self(self, *next);
      }
  };
  pass(pass, flow);
}

// --- weights that grow -----------------------------------------------------------------------------------------------

// Returns true if the set has growing weights and more than one sender; a single sender's weight has no effect.
bool Engine::has_growing_weights() const {
  return std::ranges::any_of(coupled_, [](const Flow *flow) { return flow->job->plan.grows; }) &&
         std::ranges::any_of(coupled_, [this](const Flow *flow) { return flow->tally != coupled_[0]->tally; });
}

// Begins the integration step of each set with growing weights, and returns true. If a set changed after it was solved,
// marks its flows dirty instead, and returns false.
bool Engine::begin_steps() {
  auto sets = std::exchange(growing_sets_, {});
  const auto stayed = [](const auto &set) {
    return std::ranges::count_if(set.second, [&set](Flow *flow) { return flow->listed && flow->seen == set.first; });
  };
  std::erase_if(sets, [&stayed](const auto &set) { return stayed(set) == 0; });
  if (std::ranges::all_of(sets, [&stayed](const auto &set) { return stayed(set) == std::ssize(set.second); })) {
    for (const auto &[coupling, flows] : sets)
      begin_step(flows);
    return true;
  }
  for (const auto &[coupling, flows] : sets)
    for (Flow *flow : flows)
      if (flow->listed)
        mark_dirty(*flow);
  return false;
}

void Engine::begin_step(const std::vector<Flow *> &coupled) {
  auto growing = std::make_shared<Growing>();
  growing->begins = now_;
  growing->flows.resize(coupled.size());
  for (Flow *flow : coupled)
    flow->local = -1;
  for (Flow *flow : coupled)
    for (Hop *hop = flow->hops; hop != flow->hops_end; hop++) {
      hop->edge->local = -1;
      hop->edge->seen = coupling_;
    }
  for (Flow *flow : coupled) {
    add_to_shares(*flow, growing->shares);
    growing->flows[static_cast<std::size_t>(flow->local)] = flow;
    place_of(growing->jobs, flow->job);
  }
  for (const Flow *flow : growing->flows)
    growing->sender_of.push_back(place_of(growing->senders, {flow->job, flow->tally}));

  const auto next_ms = [&growing] { return std::ranges::min(growing->jobs, {}, &Job::next_ms)->next_ms(); };
  const double until_ms = std::min(next_ms(), changes_ms_);
  if (until_ms == kInfinity)
    return;
  // The step ends at the next event at the latest, which changes the rates.
  double ms = std::max(until_ms - now_, kSameMs);
  growing->begin();
  for (ms = growing->step(ms), growing->keep_means();; growing->set_means(ms)) {
    const double event_ms = next_ms() - now_;
    if (std::ranges::any_of(growing->flows, &Flow::overdrawn))
      ms /= 2; // a backlog began and ended within the step: end the step sooner
    else if (event_ms < ms - kSameMs)
      ms = std::max(event_ms, kSameMs);
    else
      break;
  }
  growing->ends = now_ + ms;
  for (Job *job : growing->jobs)
    job->growing.push_back(growing);
}

// --- records and the heap --------------------------------------------------------------------------------------------

// Records the bytes that the job's streams have carried since its last update.
void Engine::record_carried(Job &job) {
  job.each_flow([this, &job](const Flow &flow) {
    if (flow.rate <= 0)
      return;
    for (const Hop *hop = flow.hops; hop != flow.hops_end; hop++)
      for (double from = job.at(); from < now_;) {
        const auto sample = static_cast<std::size_t>(from / sample_ms_ * kSame);
        const double to = std::min(static_cast<double>(sample + 1) * sample_ms_, now_);
        auto &carried = carried_[static_cast<std::size_t>(hop->edge - edges_.data())];
        if (carried.size() <= sample)
          carried.resize(sample + 1);
        carried[sample] += flow.rate * (to - from);
        from = std::max(to, std::nextafter(from, kInfinity));
      }
  });
}

// Moves a job to the place in the heap that its key requires.
void Engine::reposition(Job &job) {
  const auto put = [this](Job &own, std::size_t place) {
    heap_[place] = &own;
    own.heap_place = place;
  };
  std::size_t place = job.heap_place;
  for (; place > 0 && heap_[(place - 1) / 2]->key > job.key; place = (place - 1) / 2)
    put(*heap_[(place - 1) / 2], place);
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size())
      break;
    if (child + 1 < heap_.size() && heap_[child + 1]->key < heap_[child]->key)
      child++;
    if (heap_[child]->key >= job.key)
      break;
    put(*heap_[child], place);
    place = child;
  }
  put(job, place);
}

} // namespace fluid
