// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/bottlenecks.hpp"

#include <algorithm>
#include <iterator>

namespace fluid {
namespace {

enum : char { kNew, kOpen, kDone };

} // namespace

Bottlenecks::Bottlenecks(const Shares &shares, std::span<const std::size_t> sender_of)
    : shares_(shares), sender_of_(sender_of), varies_(shares.flows_.size()), arranged_(shares.links_.size()) {
  const auto &flows = shares_.flows_;
  is_ordered_ = std::ranges::all_of(flows, [&flows](const auto &flow) { return flow.priority == flows[0].priority; });
  for (const auto &flow : flows)
    if (is_ordered_ && flow.stop >= 0)
      is_ordered_ = arrange(flow.stop);
  if (is_ordered_)
    add_limits();
}

template <typename Which> Bottlenecks::Range Bottlenecks::gather(std::span<const int> flows, Which which) {
  const std::size_t begin = members_.size();
  std::ranges::copy_if(flows, std::back_inserter(members_), which);
  return {begin, members_.size()};
}

// Returns the link's capacity that the flows outside `which` leave.
template <typename Which> double Bottlenecks::left(int link, Which which) const {
  double left = shares_.links_[index(link)].capacity;
  for (const int flow : shares_.on(link))
    if (!which(flow))
      left -= shares_.flows_[index(flow)].rate;
  return left;
}

// Returns the flow whose bottleneck determines this flow's rate.
int Bottlenecks::root(int flow) const {
  while (shares_.flows_[index(flow)].stop == Shares::kFeeder)
    flow = shares_.flows_[index(flow)].feeder;
  return flow;
}

// Appends a full link to the order of computation, after the links on which its shares depend. Returns false if the
// dependencies have a cycle.
bool Bottlenecks::arrange(int link) {
  if (arranged_[index(link)] != kNew)
    return arranged_[index(link)] == kDone;
  arranged_[index(link)] = kOpen;
  const auto stops = [this, link](int flow) { return shares_.flows_[index(flow)].stop == link; };
  for (const int flow : shares_.on(link))
    if (const int stop = shares_.flows_[index(root(flow))].stop; !stops(flow) && stop >= 0 && !arrange(stop))
      return false;
  arranged_[index(link)] = kDone;
  const auto varies = [this](int flow) { return varies_[index(flow)] != 0; };
  const int first = *std::ranges::find_if(shares_.on(link), stops);
  const bool shared = std::ranges::any_of(
      shares_.on(link), [&](int flow) { return stops(flow) && sender_of_[index(flow)] != sender_of_[index(first)]; });
  if (!shared && std::ranges::none_of(shares_.on(link), varies))
    return true;
  Full full{left(link, [&](int flow) { return varies(flow) || stops(flow); }),
            gather(shares_.on(link), varies),
            gather(shares_.on(link), stops),
            {}};
  full.followers.begin = members_.size();
  for (const int flow : shares_.on(link))
    if (stops(flow))
      follow(flow);
  full.followers.end = members_.size();
  full_.push_back(full);
  return true;
}

// Marks a flow as varying, and also the flows that it feeds and whose rate it limits.
void Bottlenecks::follow(int flow) {
  varies_[index(flow)] = 1;
  varying_.push_back(flow);
  for (int next = shares_.flows_[index(flow)].first_follower; next >= 0;
       next = shares_.flows_[index(next)].next_follower)
    if (shares_.flows_[index(next)].stop == Shares::kFeeder) {
      members_.push_back(next);
      follow(next);
    }
}

// Adds the remaining constraints under which the rates stay valid: demands, links with room, and full links.
void Bottlenecks::add_limits() {
  const auto varies = [this](int flow) { return varies_[index(flow)] != 0; };
  for (std::size_t i = 0; i < shares_.flows_.size(); i++) {
    const auto &flow = shares_.flows_[i];
    if (flow.stop != Shares::kFeeder && (varies_[i] || (flow.feeder >= 0 && varies(flow.feeder))))
      wishing_.push_back(static_cast<int>(i));
  }
  for (int link = 0; index(link) < shares_.links_.size(); link++) {
    const bool has_varying = std::ranges::any_of(shares_.on(link), varies);
    const auto stops = [this, link](int flow) { return shares_.flows_[index(flow)].stop == link; };
    const auto stopped = std::ranges::find_if(shares_.on(link), stops);
    if (stopped == shares_.on(link).end()) {
      if (has_varying)
        roomy_.push_back({left(link, varies) + shares_.links_[index(link)].capacity * (kSame - 1),
                          gather(shares_.on(link), varies)});
      continue;
    }
    const bool weighs = std::ranges::any_of(
        shares_.on(link), [&](int flow) { return sender_of_[index(flow)] != sender_of_[index(*stopped)]; });
    if (has_varying || weighs)
      levels_.push_back({*stopped, gather(shares_.on(link), [&](int flow) { return !stops(flow); })});
  }
}

double Bottlenecks::wish(int place, std::span<const double> rates) const {
  const auto &flow = shares_.flows_[index(place)];
  return flow.feeder < 0 ? flow.wanted : std::min(flow.wanted, rates[index(flow.feeder)]);
}

bool Bottlenecks::find(std::span<const double> weights, std::span<double> rates) const {
  if (!is_ordered_)
    return false;
  const auto weight = [&](int flow) { return weights[sender_of_[index(flow)]]; };
  for (const Full &full : full_) {
    double left = full.left, sum = 0;
    for (const int flow : in(full.others))
      left -= rates[index(flow)];
    for (const int flow : in(full.stopped))
      sum += weight(flow);
    for (const int flow : in(full.stopped))
      rates[index(flow)] = std::max(left, 0.0) / sum * weight(flow);
    for (const int flow : in(full.followers))
      rates[index(flow)] = wish(flow, rates);
  }
  return std::ranges::all_of(wishing_, [&](int flow) { return rates[index(flow)] <= wish(flow, rates) * kSame; }) &&
         std::ranges::all_of(roomy_,
                             [&](const Roomy &roomy) {
                               double sum = 0;
                               for (const int flow : in(roomy.flows))
                                 sum += rates[index(flow)];
                               return sum <= roomy.left;
                             }) &&
         std::ranges::all_of(levels_, [&](const Level &level) {
           const double most = rates[index(level.stopped)] * kSame, own = weight(level.stopped);
           return std::ranges::all_of(in(level.others),
                                      [&](int flow) { return rates[index(flow)] * own <= most * weight(flow); });
         });
}

} // namespace fluid
