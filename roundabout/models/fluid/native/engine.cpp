// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fluid {
namespace {

// Units of the smallest capacity, 2^36: sums of up to 2^27 times this capacity fit 63 bits.
constexpr double kUnits = 68719476736;

template <typename Each> std::size_t find_or_append(std::vector<Each> &all, const Each &one) {
  const auto found = std::ranges::find(all, one);
  const auto place = static_cast<std::size_t>(found - all.begin());
  if (found == all.end())
    all.push_back(one);
  return place;
}

// Returns the units of a stream's bound that count on one of its links.
std::int64_t units_on(const Hop &hop, std::int64_t bound_units) {
  return hop.share == 1 ? bound_units : std::llround(static_cast<double>(bound_units) * hop.share);
}

// Returns true if the flow has no backlog, so that it can send only what its feeder delivers.
bool sends_only_inflow(const Flow &flow) {
  return flow.feeder && flow.feeder->is_on_links && flow.waiting <= 0 && !flow.builds_backlog;
}

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
    edges_[i].limit_units = to_units(edges_[i].capacity);
    if (capacities[i].size() > 1)
      stepped_capacities_.push_back({&edges_[i], capacities[i]});
    capacity_steps_ = std::max(capacity_steps_, capacities[i].size());
  }
  if (capacity_steps_ > 1)
    changes_ms_ = step_ms_;
  capacities_change_ = !stepped_capacities_.empty();
}

std::int64_t Engine::to_units(double bytes_per_ms) const { return std::llround(bytes_per_ms * units_per_rate_); }

std::size_t Engine::add(Plan plan) {
  jobs_.push_back(std::make_unique<Job>(std::move(plan), jobs_.size(), now_));
  Job &job = *jobs_.back();
  job.heap_place = heap_.size();
  heap_.push_back(&job);
  reposition(job);
  return job.number;
}

void Engine::balance(SpineGroups groups) {
  spine_groups_ = std::move(groups);
  moves_ms_ = spine_groups_->next_ms(now_);
}

void Engine::stop(std::size_t job) {
  jobs_[job]->depart(now_);
  to_update_.push_back(jobs_[job].get());
  process_instant();
}

void Engine::set_capacity(std::size_t edge, double bytes_per_ms) {
  capacities_change_ = true;
  change_capacity(edges_[edge], bytes_per_ms);
  process_change();
}

void Engine::reroute(std::size_t number, std::vector<std::vector<StreamLink>> paths) {
  Job &job = *jobs_[number];
  to_update_.push_back(&job);
  process_change(); // on the former links until now
  if (job.ended())
    return;
  job.for_each_flow([this](Flow &flow) { remove_from_links(flow); });
  job.reroute(std::move(paths));
  to_update_.push_back(&job);
  process_change();
}

void Engine::process_change() {
  process_instant();
  for (const Job *job : updated_)
    if (job->ended())
      ended_.push_back(job->number);
}

std::vector<std::size_t> Engine::run(double until_ms, std::int64_t &instants) {
  std::vector<std::size_t> ended = std::exchange(ended_, {});
  for (; ended.empty() && instants > 0; instants--) {
    const double event_ms = heap_.empty() ? kInfinity : heap_.front()->next_event_ms;
    const double next_ms = std::min({event_ms, changes_ms_, event_ms < kInfinity ? moves_ms_ : kInfinity});
    if (next_ms > until_ms || next_ms == kInfinity) {
      now_ = until_ms < kInfinity ? std::max(now_, until_ms) : now_;
      break;
    }
    now_ = std::max(now_, next_ms);
    if (changes_ms_ <= now_ + kEqualMs)
      change_capacities();
    if (moves_ms_ <= now_ + kEqualMs)
      move_streams();
    while (!heap_.empty() && heap_.front()->next_event_ms <= now_ + kEqualMs) {
      Job &due = *heap_.front();
      to_update_.push_back(&due);
      due.next_event_ms = kInfinity; // set again at the end of this instant
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
    if (!job->ended() && job->advanced_to() < now_)
      to_update_.push_back(job.get());
  process_instant();
  std::vector<double> until{0.0};
  const std::vector<double> &carried = carried_[number];
  const auto samples = static_cast<std::size_t>(now_ / sample_ms_ * kRounding);
  for (std::size_t i = 0; i < samples; i++)
    until.push_back(until.back() + (i < carried.size() ? carried[i] : 0));
  return until;
}

std::vector<const Flow *> Engine::active_flows() {
  std::vector<const Flow *> found;
  for (const auto &job : jobs_)
    job->for_each_flow([&found](const Flow &flow) {
      if (flow.is_on_links)
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
    job->reuse_ended_phases();
    job->next_event_ms = job->next_ms();
    for (const auto &step : job->steps)
      job->next_event_ms = std::min(job->next_event_ms, step->ends_ms);
    reposition(*job);
  }
}

// Sets the capacities of the step that begins now.
void Engine::change_capacities() {
  const auto step = std::min(static_cast<std::size_t>((now_ + kEqualMs) / step_ms_), capacity_steps_ - 1);
  changes_ms_ = step + 1 < capacity_steps_ ? static_cast<double>(step + 1) * step_ms_ : kInfinity;
  for (const auto &[edge, capacities] : stepped_capacities_) {
    const double capacity = capacities[std::min(step, capacities.size() - 1)];
    if (capacity != edge->capacity)
      change_capacity(*edge, capacity);
  }
}

void Engine::change_capacity(Edge &edge, double bytes_per_ms) {
  edge.capacity = edge.limit = bytes_per_ms;
  edge.limit_units = to_units(bytes_per_ms);
  update_edge(edge, true);
  for (const Hop *hop = edge.first; hop; hop = hop->next)
    to_update_.push_back(hop->flow->job);
}

// Moves streams to other spines where their links have too many.
void Engine::move_streams() {
  moves_ms_ = spine_groups_->next_ms(now_);
  for (Flow *flow : spine_groups_->streams_to_move()) {
    flow->moves = true;
    to_update_.push_back(flow->job);
  }
}

void Engine::update_job(Job &job) {
  if (job.last_instant == instant_ || job.ended())
    return;
  job.last_instant = instant_;
  updated_.push_back(&job);
  while (!job.steps.empty())
    end_step(std::shared_ptr(job.steps.back()));
  if (sample_ms_ > 0)
    record_carried(job);
  job.advance(now_);
  job.enter_next_phases(now_);
  for (ActivePhase *active : job.ended_phases)
    for (Flow &flow : active->flows)
      remove_from_links(flow);
  job.for_each_flow([this](Flow &flow) { update_demand(flow); });
}

// Ends an integration step now, before its planned end, and marks its jobs and flows for an update.
void Engine::end_step(const std::shared_ptr<IntegrationStep> &step) {
  if (now_ > step->begins_ms && now_ < step->ends_ms)
    step->set_mean_rates(now_ - step->begins_ms);
  for (Job *job : step->jobs) {
    std::erase(job->steps, step);
    to_update_.push_back(job);
  }
  for (Flow *flow : step->flows)
    mark_dirty(*flow);
}

// Computes a stream's demand and the upper bound of its rate from its own state and its feeder's.
void Engine::update_demand(Flow &flow) {
  if (!flow.is_active())
    return remove_from_links(flow);
  if (std::exchange(flow.moves, false))
    remove_from_links(flow);
  const bool is_new = !std::exchange(flow.is_on_links, true);
  if (is_new && spine_groups_ && flow.hops != flow.hops_end)
    spine_groups_->choose(flow);
  if (is_new)
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
      hop->pointer_here = &hop->edge->first;
      hop->next = std::exchange(hop->edge->first, hop);
      if (hop->next)
        hop->next->pointer_here = &hop->next;
      hop->edge->streams++;
    }
  flow.builds_backlog = false;
  if (capacities_change_)
    flow.path_capacity = flow.narrowest_capacity();
  double demand = kInfinity, bound = flow.path_capacity;
  if (flow.waiting <= 0) {
    const bool comes = flow.feeder && flow.feeder->is_on_links;
    demand = !flow.feeder ? flow.pace : comes ? flow.feeder->demand : 0;
    bound = std::min({demand, bound, comes ? flow.feeder->bound : kInfinity});
  }
  const bool followed = std::exchange(flow.sent_only_inflow, sends_only_inflow(flow));
  if (is_new || demand != flow.demand || bound != flow.bound || followed != flow.sent_only_inflow)
    set_demand(flow, demand, bound, true);
}

void Engine::remove_from_links(Flow &flow) {
  flow.rate = 0;
  if (!std::exchange(flow.is_on_links, false))
    return;
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    *hop->pointer_here = hop->next;
    if (hop->next)
      hop->next->pointer_here = hop->pointer_here;
    hop->edge->bound_units -= units_on(*hop, flow.bound_units);
    hop->edge->streams--;
    update_edge(*hop->edge, true);
  }
  flow.bound_units = 0;
}

void Engine::set_demand(Flow &flow, double demand, double bound, bool is_changed) {
  flow.demand = demand;
  flow.bound = bound;
  if (flow.hops != flow.hops_end) {
    const std::int64_t had = std::exchange(flow.bound_units, to_units(bound));
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
      hop->edge->bound_units += units_on(*hop, flow.bound_units) - units_on(*hop, had);
      update_edge(*hop->edge, is_changed);
    }
  }
  if (is_changed)
    mark_dirty(flow);
}

// Updates a link's limit. Marks the link dirty if it couples its streams, and its limit changed or any of its streams
// started, ended or changed its demand (`streams`).
void Engine::update_edge(Edge &edge, bool streams) {
  const bool was_tight = edge.is_tight;
  const double had = edge.limit;
  if (congested_ != 1) {
    edge.limit = congested_limit(edge);
    edge.limit_units = to_units(edge.limit);
  }
  edge.is_tight = edge.bound_units > edge.limit_units;
  const bool couples = was_tight || edge.is_tight;
  if (couples && (streams || was_tight != edge.is_tight || had != edge.limit) && !std::exchange(edge.is_dirty, true))
    dirty_edges_.push_back(&edge);
}

double Engine::congested_limit(const Edge &edge) const {
  double demand = 0;
  for (const Hop *hop = edge.first; hop; hop = hop->next)
    demand += hop->flow->demand * hop->share;
  return edge.first && edge.first->next && demand > edge.capacity * kRounding ? edge.capacity * congested_
                                                                              : edge.capacity;
}

void Engine::mark_dirty(Flow &flow) {
  if (!std::exchange(flow.is_dirty, true))
    dirty_flows_.push_back(&flow);
}

// --- coupled flows ---------------------------------------------------------------------------------------------------

// Recomputes rates until no job, link or flow is left to update.
void Engine::recompute_rates() {
  do {
    while (!to_update_.empty() || !dirty_edges_.empty() || !dirty_flows_.empty()) {
      set_number_++;
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
        if (edge.is_dirty)
          add_streams_of(edge);
      } else {
        Flow &flow = *dirty_flows_.back();
        dirty_flows_.pop_back();
        if (flow.is_dirty)
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
    flow.is_dirty = false;
    if (!flow.is_on_links)
      continue;
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++)
      if (hop->edge->is_dirty || (hop->edge->is_tight && hop->edge->set_number != set_number_))
        add_streams_of(*hop->edge);
    if (flow.feeder && flow.waiting <= 0)
      add_coupled(*flow.feeder);
    for (Flow *next = flow.first_follower; next; next = next->next_follower)
      if (next->waiting <= 0)
        add_coupled(*next);
    if (flow.job->plan.has_factor) // one weight for all streams of the job
      flow.job->for_each_flow([this](Flow &other) { add_coupled(other); });
  }
  std::erase_if(coupled_, [](const Flow *flow) { return !flow->is_on_links; });
}

void Engine::add_streams_of(Edge &edge) {
  edge.is_dirty = false;
  edge.set_number = set_number_;
  edge.set_index = -1;
  for (Hop *hop = edge.first; hop; hop = hop->next)
    add_coupled(*hop->flow);
}

void Engine::add_coupled(Flow &flow) {
  if (std::exchange(flow.set_number, set_number_) == set_number_)
    return;
  flow.set_index = -1;
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
    flow->rate = shares_.links() > 0 ? shares_.rate(static_cast<std::size_t>(flow->set_index)) : flow->bound;
  for (Flow *flow : coupled_)
    if (flow->waiting <= 0 && !flow->builds_backlog && flow->hops != flow->hops_end &&
        flow->rate * kRounding < flow->inflow())
      begin_backlog(*flow);
  if (shares_.links() > 0 && has_growing_weights())
    growing_sets_.emplace_back(set_number_, coupled_);
}

int Engine::add_to_shares(Flow &flow, Shares &shares) {
  if (flow.set_index >= 0)
    return flow.set_index;
  const int first = sends_only_inflow(flow) ? add_to_shares(*flow.feeder, shares) : -1;
  flow.set_index = shares.add_flow(flow.bound, flow.job->weight(*flow.sent), flow.job->plan.priority, first);
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    Edge &edge = *hop->edge;
    if (!edge.is_tight || edge.set_number != set_number_)
      continue; // a link that became tight just now is dirty, so the set is solved again
    if (edge.set_index < 0)
      edge.set_index = shares.add_link(edge.limit);
    shares.add_hop(edge.set_index, hop->share);
  }
  return flow.set_index;
}

void Engine::begin_backlog(Flow &flow) {
  flow.builds_backlog = true;
  set_demand(flow, kInfinity, flow.path_capacity, false);
  const auto pass = [this](const auto &self, Flow &from) -> void {
    for (Flow *next = from.first_follower; next; next = next->next_follower)
      if (next->is_on_links && sends_only_inflow(*next)) {
        set_demand(*next, from.demand, std::min(from.bound, next->path_capacity), false);
        self(self, *next);
      }
  };
  pass(pass, flow);
}

// --- weights that grow -----------------------------------------------------------------------------------------------

// Returns true if the set has growing weights and more than one sender; a single sender's weight has no effect.
bool Engine::has_growing_weights() const {
  return std::ranges::any_of(coupled_, [](const Flow *flow) { return flow->job->plan.has_factor; }) &&
         std::ranges::any_of(coupled_, [this](const Flow *flow) { return flow->sent != coupled_[0]->sent; });
}

// Begins the integration step of each set with growing weights, and returns true. If a set changed after it was solved,
// marks its flows dirty instead, and returns false.
bool Engine::begin_steps() {
  auto sets = std::exchange(growing_sets_, {});
  const auto stayed = [](const auto &set) {
    return std::ranges::count_if(set.second,
                                 [&set](Flow *flow) { return flow->is_on_links && flow->set_number == set.first; });
  };
  std::erase_if(sets, [&stayed](const auto &set) { return stayed(set) == 0; });
  if (std::ranges::all_of(sets, [&stayed](const auto &set) { return stayed(set) == std::ssize(set.second); })) {
    for (const auto &[number, flows] : sets)
      begin_step(flows);
    return true;
  }
  for (const auto &[number, flows] : sets)
    for (Flow *flow : flows)
      if (flow->is_on_links)
        mark_dirty(*flow);
  return false;
}

void Engine::begin_step(const std::vector<Flow *> &coupled) {
  auto step = std::make_shared<IntegrationStep>();
  step->begins_ms = now_;
  step->flows.resize(coupled.size());
  for (Flow *flow : coupled)
    flow->set_index = -1;
  for (Flow *flow : coupled)
    for (Hop *hop = flow->hops; hop != flow->hops_end; hop++) {
      hop->edge->set_index = -1;
      hop->edge->set_number = set_number_;
    }
  for (Flow *flow : coupled) {
    add_to_shares(*flow, step->shares);
    step->flows[static_cast<std::size_t>(flow->set_index)] = flow;
    find_or_append(step->jobs, flow->job);
  }
  for (const Flow *flow : step->flows)
    step->sender_of.push_back(find_or_append(step->senders, {flow->job, flow->sent}));

  const auto next_ms = [&step] { return std::ranges::min(step->jobs, {}, &Job::next_ms)->next_ms(); };
  const double until_ms = std::min(next_ms(), changes_ms_);
  if (until_ms == kInfinity)
    return;
  // The step ends at the next event at the latest, which changes the rates.
  double ms = std::max(until_ms - now_, kEqualMs);
  step->start();
  for (ms = step->choose_length(ms), step->set_mean_rates();; step->set_mean_rates(ms)) {
    const double event_ms = next_ms() - now_;
    if (std::ranges::any_of(step->flows, &Flow::is_overdrawn))
      ms /= 2; // a backlog began and ended within the step: end the step sooner
    else if (event_ms < ms - kEqualMs)
      ms = std::max(event_ms, kEqualMs);
    else
      break;
  }
  step->ends_ms = now_ + ms;
  for (Job *job : step->jobs)
    job->steps.push_back(step);
}

// --- records and the heap --------------------------------------------------------------------------------------------

// Records the bytes that the job's streams have carried since its last update.
void Engine::record_carried(Job &job) {
  job.for_each_flow([this, &job](const Flow &flow) {
    if (flow.rate <= 0)
      return;
    for (const Hop *hop = flow.hops; hop != flow.hops_end; hop++)
      for (double from = job.advanced_to(); from < now_;) {
        const auto sample = static_cast<std::size_t>(from / sample_ms_ * kRounding);
        const double to = std::min(static_cast<double>(sample + 1) * sample_ms_, now_);
        auto &carried = carried_[static_cast<std::size_t>(hop->edge - edges_.data())];
        if (carried.size() <= sample)
          carried.resize(sample + 1);
        carried[sample] += hop->share * flow.rate * (to - from);
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
  for (; place > 0 && heap_[(place - 1) / 2]->next_event_ms > job.next_event_ms; place = (place - 1) / 2)
    put(*heap_[(place - 1) / 2], place);
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size())
      break;
    if (child + 1 < heap_.size() && heap_[child + 1]->next_event_ms < heap_[child]->next_event_ms)
      child++;
    if (heap_[child]->next_event_ms >= job.next_event_ms)
      break;
    put(*heap_[child], place);
    place = child;
  }
  put(job, place);
}

} // namespace fluid
