// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fluid {
namespace {

constexpr double kUnits = 68719476736; // of the least capacity: 2^36, so that 2^27 times as much can be added up

template <typename Each> std::size_t place_of(std::vector<Each> &all, const Each &one) {
  const auto found = std::ranges::find(all, one);
  const auto place = static_cast<std::size_t>(found - all.begin());
  if (found == all.end())
    all.push_back(one);
  return place;
}

// Whether it has no more to send than its feeder gives.
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
  push(job);
  return job.number;
}

void Engine::stop(std::size_t job) {
  jobs_[job]->depart(now_);
  to_touch_.push_back(jobs_[job].get());
  instant();
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
      take_step();
    while (!heap_.empty() && heap_.front()->key <= now_ + kSameMs) {
      Job &due = *heap_.front();
      to_touch_.push_back(&due);
      due.key = kInfinity; // until the instant's end
      push(due);
    }
    instant();
    for (const Job *job : touched_)
      if (job->ended())
        ended.push_back(job->number);
  }
  std::ranges::sort(ended);
  return ended;
}

std::vector<double> Engine::carried(std::size_t number) {
  for (const auto &job : jobs_)
    if (!job->ended() && job->at() < now_)
      to_touch_.push_back(job.get());
  instant();
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

// --- an instant ------------------------------------------------------------------------------------------------------

// Brings those that are due, and all whom they concern, to now, and finds their rates and next events.
void Engine::instant() {
  instant_++;
  touched_.clear();
  share();
  for (Job *job : touched_) {
    job->recycle();
    job->key = job->next_ms();
    for (const auto &growing : job->growing)
      job->key = std::min(job->key, growing->ends);
    push(*job);
  }
}

// Gives links what they carry from now on.
void Engine::take_step() {
  const auto step = std::min(static_cast<std::size_t>((now_ + kSameMs) / step_ms_), steps_ - 1);
  changes_ms_ = step + 1 < steps_ ? static_cast<double>(step + 1) * step_ms_ : kInfinity;
  for (const auto &[edge, capacities] : stepping_) {
    const double capacity = capacities[std::min(step, capacities.size() - 1)];
    if (capacity == edge->capacity)
      continue;
    edge->capacity = edge->limit = capacity;
    edge->limit_units = units(capacity);
    change(*edge, true);
    for (const Hop *hop = edge->first; hop; hop = hop->next)
      to_touch_.push_back(hop->flow->job);
  }
}

void Engine::touch(Job &job) {
  if (job.touched == instant_ || job.ended())
    return;
  job.touched = instant_;
  touched_.push_back(&job);
  while (!job.growing.empty())
    cut(std::shared_ptr(job.growing.back()));
  if (sample_ms_ > 0)
    note(job);
  job.advance(now_);
  job.settle(now_);
  for (Sending *sending : job.retired)
    for (Flow &flow : sending->flows)
      leave(flow);
  job.each_flow([this](Flow &flow) { refresh(flow); });
}

// Ends a step now, where it was to be longer.
void Engine::cut(const std::shared_ptr<Growing> &growing) {
  if (now_ > growing->begins && now_ < growing->ends)
    growing->set_means(now_ - growing->begins);
  for (Job *job : growing->jobs) {
    std::erase(job->growing, growing);
    to_touch_.push_back(job);
  }
  for (Flow *flow : growing->flows)
    mark(*flow);
}

// What a stream wants now, as far as it alone can tell.
void Engine::refresh(Flow &flow) {
  if (!flow.live())
    return leave(flow);
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
    ask(flow, wanted, bound, true);
}

void Engine::leave(Flow &flow) {
  flow.rate = 0;
  if (!std::exchange(flow.listed, false))
    return;
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    *hop->from = hop->next;
    if (hop->next)
      hop->next->from = hop->from;
    hop->edge->units -= flow.units;
    change(*hop->edge, true);
  }
  flow.units = 0;
}

void Engine::ask(Flow &flow, double wanted, double bound, bool news) {
  flow.wanted = wanted;
  flow.bound = bound;
  if (flow.hops != flow.hops_end) {
    const std::int64_t more = units(bound) - flow.units;
    flow.units += more;
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
      hop->edge->units += more;
      change(*hop->edge, news);
    }
  }
  if (news)
    mark(flow);
}

// Whether those on a link are to be looked at: where `streams` came, went or want something else, if it couples them.
void Engine::change(Edge &edge, bool streams) {
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

void Engine::mark(Flow &flow) {
  if (!std::exchange(flow.dirty, true))
    dirty_flows_.push_back(&flow);
}

// --- those that are coupled ------------------------------------------------------------------------------------------

// Finds the rates of all that are to be found.
void Engine::share() {
  do {
    while (!to_touch_.empty() || !dirty_edges_.empty() || !dirty_flows_.empty()) {
      coupling_++;
      coupled_.clear();
      if (!to_touch_.empty()) {
        Job &job = *to_touch_.back();
        to_touch_.pop_back();
        touch(job);
        continue;
      }
      if (!dirty_edges_.empty()) {
        Edge &edge = *dirty_edges_.back();
        dirty_edges_.pop_back();
        if (edge.dirty)
          expand(edge);
      } else {
        Flow &flow = *dirty_flows_.back();
        dirty_flows_.pop_back();
        if (flow.dirty)
          visit(flow);
      }
      couple();
      solve();
    }
  } while (!grow_all());
}

// Adds all that those already found are coupled with.
void Engine::couple() {
  for (std::size_t i = 0; i < coupled_.size(); i++) {
    Flow &flow = *coupled_[i];
    touch(*flow.job);
    flow.dirty = false;
    if (!flow.listed)
      continue;
    for (Hop *hop = flow.hops; hop != flow.hops_end; hop++)
      if (hop->edge->dirty || (hop->edge->tight && hop->edge->seen != coupling_))
        expand(*hop->edge);
    if (flow.feeder && flow.waiting <= 0)
      visit(*flow.feeder);
    for (Flow *next = flow.first_follower; next; next = next->next_follower)
      if (next->waiting <= 0)
        visit(*next);
    if (flow.job->plan.grows) // one weight for all that it sends
      flow.job->each_flow([this](Flow &other) { visit(other); });
  }
  std::erase_if(coupled_, [](const Flow *flow) { return !flow->listed; });
}

void Engine::expand(Edge &edge) {
  edge.dirty = false;
  edge.seen = coupling_;
  edge.local = -1;
  for (Hop *hop = edge.first; hop; hop = hop->next)
    visit(*hop->flow);
}

void Engine::visit(Flow &flow) {
  if (std::exchange(flow.seen, coupling_) == coupling_)
    return;
  flow.local = -1;
  coupled_.push_back(&flow);
}

// The coupled set's rates. Who gets less than comes has a backlog from now on, and wants all there is.
void Engine::solve() {
  shares_.clear();
  for (Flow *flow : coupled_)
    describe(*flow, shares_);
  if (shares_.links() > 0)
    shares_.solve();
  for (Flow *flow : coupled_)
    flow->rate = shares_.links() > 0 ? shares_.rate(static_cast<std::size_t>(flow->local)) : flow->bound;
  for (Flow *flow : coupled_)
    if (flow->waiting <= 0 && !flow->lags && flow->hops != flow->hops_end && flow->rate * kSame < flow->inflow())
      lag(*flow);
  if (shares_.links() > 0 && grows())
    to_grow_.emplace_back(coupling_, coupled_);
}

int Engine::describe(Flow &flow, Shares &shares) {
  if (flow.local >= 0)
    return flow.local;
  const int first = passes_on(flow) ? describe(*flow.feeder, shares) : -1;
  flow.local = shares.add_flow(flow.bound, flow.job->weight(*flow.tally), flow.job->plan.priority, first);
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    Edge &edge = *hop->edge;
    if (!edge.tight || edge.seen != coupling_)
      continue; // or it became tight just now, and all will be looked at once more
    if (edge.local < 0)
      edge.local = shares.add_link(edge.limit);
    shares.add_hop(edge.local);
  }
  return flow.local;
}

void Engine::lag(Flow &flow) {
  flow.lags = true;
  ask(flow, kInfinity, flow.path_capacity, false);
  const auto pass = [this](const auto &self, Flow &from) -> void {
    for (Flow *next = from.first_follower; next; next = next->next_follower)
      if (next->listed && passes_on(*next)) {
        ask(*next, from.wanted, std::min(from.bound, next->path_capacity), false);
        self(self, *next);
      }
  };
  pass(pass, flow);
}

// --- weights that grow -----------------------------------------------------------------------------------------------

// Weights matter beside others'.
bool Engine::grows() const {
  return std::ranges::any_of(coupled_, [](const Flow *flow) { return flow->job->plan.grows; }) &&
         std::ranges::any_of(coupled_, [this](const Flow *flow) { return flow->tally != coupled_[0]->tally; });
}

// Whether all sets are as they were found; else those of which a part has changed since are to be looked at once more.
bool Engine::grow_all() {
  auto sets = std::exchange(to_grow_, {});
  const auto stayed = [](const auto &set) {
    return std::ranges::count_if(set.second, [&set](Flow *flow) { return flow->listed && flow->seen == set.first; });
  };
  std::erase_if(sets, [&stayed](const auto &set) { return stayed(set) == 0; });
  if (std::ranges::all_of(sets, [&stayed](const auto &set) { return stayed(set) == std::ssize(set.second); })) {
    for (const auto &[coupling, flows] : sets)
      grow(flows);
    return true;
  }
  for (const auto &[coupling, flows] : sets)
    for (Flow *flow : flows)
      if (flow->listed)
        mark(*flow);
  return false;
}

void Engine::grow(const std::vector<Flow *> &coupled) {
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
    describe(*flow, growing->shares);
    growing->flows[static_cast<std::size_t>(flow->local)] = flow;
    place_of(growing->jobs, flow->job);
  }
  for (const Flow *flow : growing->flows)
    growing->sender_of.push_back(place_of(growing->senders, {flow->job, flow->tally}));

  const auto next_ms = [&growing] { return std::ranges::min(growing->jobs, {}, &Job::next_ms)->next_ms(); };
  const double until_ms = std::min(next_ms(), changes_ms_);
  if (until_ms == kInfinity)
    return;
  // However soon something else happens, these rates are to be found again then.
  double ms = std::max(until_ms - now_, kSameMs);
  growing->begin();
  for (ms = growing->step(ms), growing->keep_means();; growing->set_means(ms)) {
    const double event_ms = next_ms() - now_;
    if (std::ranges::any_of(growing->flows, &Flow::overdrawn))
      ms /= 2; // a backlog came and went within the step: let it come first
    else if (event_ms < ms - kSameMs)
      ms = std::max(event_ms, kSameMs);
    else
      break;
  }
  growing->ends = now_ + ms;
  for (Job *job : growing->jobs)
    job->growing.push_back(growing);
}

// --- what is kept ----------------------------------------------------------------------------------------------------

// What its streams have carried since its state was last brought up to date.
void Engine::note(Job &job) {
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

// Puts a job where its key belongs.
void Engine::push(Job &job) {
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
