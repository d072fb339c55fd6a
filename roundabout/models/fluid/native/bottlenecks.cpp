// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/bottlenecks.hpp"

#include <algorithm>
#include <iterator>

namespace fluid {
namespace {

enum : char { kNew, kOpen, kDone };

} // namespace

Bottlenecks::Bottlenecks(const Shares &shares, std::span<const std::size_t> sender_of)
    : shares_(shares), sender_of_(sender_of), varies_(shares.flows_.size()), states_(shares.links_.size()) {
  const auto &flows = shares_.flows_;
  is_ordered_ = !shares_.has_fractions_ &&
                std::ranges::all_of(flows, [&flows](const auto &flow) { return flow.priority == flows[0].priority; });
  for (const auto &flow : flows)
    if (is_ordered_ && flow.bottleneck >= 0)
      is_ordered_ = append_in_order(flow.bottleneck);
  if (is_ordered_)
    add_constraints();
}

template <typename Which> Bottlenecks::Range Bottlenecks::append_members(std::span<const int> flows, Which which) {
  const std::size_t begin = members_.size();
  std::ranges::copy_if(flows, std::back_inserter(members_), which);
  return {begin, members_.size()};
}

// Returns the link's capacity that the flows outside `which` leave.
template <typename Which> double Bottlenecks::capacity_left(int link, Which which) const {
  double left = shares_.links_[index(link)].capacity;
  for (const int flow : shares_.flows_on(link))
    if (!which(flow))
      left -= shares_.flows_[index(flow)].rate;
  return left;
}

// Returns the flow whose bottleneck determines this flow's rate.
int Bottlenecks::limiting_flow(int flow) const {
  while (shares_.flows_[index(flow)].bottleneck == Shares::kFeeder)
    flow = shares_.flows_[index(flow)].feeder;
  return flow;
}

// Appends a full link to the order of computation, after the links on which its shares depend. Returns false if the
// dependencies have a cycle.
bool Bottlenecks::append_in_order(int link) {
  if (states_[index(link)] != kNew)
    return states_[index(link)] == kDone;
  states_[index(link)] = kOpen;
  const auto is_limited_here = [this, link](int flow) { return shares_.flows_[index(flow)].bottleneck == link; };
  for (const int flow : shares_.flows_on(link))
    if (const int bottleneck = shares_.flows_[index(limiting_flow(flow))].bottleneck;
        !is_limited_here(flow) && bottleneck >= 0 && !append_in_order(bottleneck))
      return false;
  states_[index(link)] = kDone;
  const auto varies = [this](int flow) { return varies_[index(flow)] != 0; };
  const int first = *std::ranges::find_if(shares_.flows_on(link), is_limited_here);
  const bool has_several_senders = std::ranges::any_of(shares_.flows_on(link), [&](int flow) {
    return is_limited_here(flow) && sender_of_[index(flow)] != sender_of_[index(first)];
  });
  if (!has_several_senders && std::ranges::none_of(shares_.flows_on(link), varies))
    return true;
  FullLink full{capacity_left(link, [&](int flow) { return varies(flow) || is_limited_here(flow); }),
                append_members(shares_.flows_on(link), varies),
                append_members(shares_.flows_on(link), is_limited_here),
                {}};
  full.followers.begin = members_.size();
  for (const int flow : shares_.flows_on(link))
    if (is_limited_here(flow))
      mark_varying(flow);
  full.followers.end = members_.size();
  full_links_.push_back(full);
  return true;
}

// Marks a flow as varying, and also the flows that it feeds and whose rate it limits.
void Bottlenecks::mark_varying(int flow) {
  varies_[index(flow)] = 1;
  varying_.push_back(flow);
  for (int next = shares_.flows_[index(flow)].first_follower; next >= 0;
       next = shares_.flows_[index(next)].next_follower)
    if (shares_.flows_[index(next)].bottleneck == Shares::kFeeder) {
      members_.push_back(next);
      mark_varying(next);
    }
}

// Adds the remaining constraints under which the rates stay valid: demands, links with room, and full links.
void Bottlenecks::add_constraints() {
  const auto varies = [this](int flow) { return varies_[index(flow)] != 0; };
  for (std::size_t i = 0; i < shares_.flows_.size(); i++) {
    const auto &flow = shares_.flows_[i];
    if (flow.bottleneck != Shares::kFeeder && (varies_[i] || (flow.feeder >= 0 && varies(flow.feeder))))
      limited_by_demand_.push_back(static_cast<int>(i));
  }
  for (int link = 0; index(link) < shares_.links_.size(); link++) {
    const bool has_varying = std::ranges::any_of(shares_.flows_on(link), varies);
    const auto is_limited_here = [this, link](int flow) { return shares_.flows_[index(flow)].bottleneck == link; };
    const auto limited = std::ranges::find_if(shares_.flows_on(link), is_limited_here);
    if (limited == shares_.flows_on(link).end()) {
      if (has_varying)
        links_with_room_.push_back(
            {capacity_left(link, varies) + shares_.links_[index(link)].capacity * (kRounding - 1),
             append_members(shares_.flows_on(link), varies)});
      continue;
    }
    const bool has_other_senders = std::ranges::any_of(
        shares_.flows_on(link), [&](int flow) { return sender_of_[index(flow)] != sender_of_[index(*limited)]; });
    if (has_varying || has_other_senders)
      share_bounds_.push_back(
          {*limited, append_members(shares_.flows_on(link), [&](int flow) { return !is_limited_here(flow); })});
  }
}

double Bottlenecks::demand_of(int place, std::span<const double> rates) const {
  const auto &flow = shares_.flows_[index(place)];
  return flow.feeder < 0 ? flow.demand : std::min(flow.demand, rates[index(flow.feeder)]);
}

bool Bottlenecks::compute_rates(std::span<const double> weights, std::span<double> rates) const {
  if (!is_ordered_)
    return false;
  const auto weight = [&](int flow) { return weights[sender_of_[index(flow)]]; };
  for (const FullLink &full : full_links_) {
    double left = full.left, sum = 0;
    for (const int flow : in(full.others))
      left -= rates[index(flow)];
    for (const int flow : in(full.limited))
      sum += weight(flow);
    for (const int flow : in(full.limited))
      rates[index(flow)] = std::max(left, 0.0) / sum * weight(flow);
    for (const int flow : in(full.followers))
      rates[index(flow)] = demand_of(flow, rates);
  }
  return std::ranges::all_of(limited_by_demand_,
                             [&](int flow) { return rates[index(flow)] <= demand_of(flow, rates) * kRounding; }) &&
         std::ranges::all_of(links_with_room_,
                             [&](const LinkWithRoom &link) {
                               double sum = 0;
                               for (const int flow : in(link.flows))
                                 sum += rates[index(flow)];
                               return sum <= link.left;
                             }) &&
         std::ranges::all_of(share_bounds_, [&](const ShareBound &bound) {
           const double most = rates[index(bound.limited)] * kRounding, own = weight(bound.limited);
           return std::ranges::all_of(in(bound.others),
                                      [&](int flow) { return rates[index(flow)] * own <= most * weight(flow); });
         });
}

} // namespace fluid
