// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/report.hpp"

#include <algorithm>
#include <utility>

namespace crossgen {
namespace {

using native::Nanos;
using nlohmann::ordered_json;

constexpr std::size_t kBatchBytes = 1 << 20;
constexpr int kReaderTimeoutMs = 10'000;

// The schedule was not held if more flows than this lagged, or less than that of the load was delivered.
constexpr double kMaxLagging = 0.01;
constexpr double kMinDelivered = 0.95;

// Below this share of delivered bytes, the load exceeded what the network could carry.
constexpr double kOverload = 0.99;

void append(std::string &line, const char *key, std::int64_t value) {
  line.append(",\"").append(key).append("\":").append(std::to_string(value));
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

void Report::ready(std::uint64_t planned_flows) {
  add({{"event", "ready"}, {"flows", planned_flows}});
  lines_.finish(kReaderTimeoutMs);
}

// The summary comes first, so that a reader that stops half-way has it.
void Report::results(const Results &results, Outcome outcome) {
  summary(results, outcome);
  flows(results);
  add({{"event", "done"}, {"not_listed", results.not_listed()}, {"dropped_lines", lines_.dropped()}});
  lines_.finish(kReaderTimeoutMs);
}

void Report::summary(const Results &results, Outcome &outcome) {
  double offered_gbps = 0;
  double achieved_gbps = 0;
  if (outcome.from && outcome.until && outcome.until->at_ns > outcome.from->at_ns) {
    const auto window_ns = static_cast<double>(outcome.until->at_ns - outcome.from->at_ns);
    offered_gbps = 8 * static_cast<double>(results.measured_bytes) / window_ns;
    achieved_gbps = 8 * static_cast<double>(outcome.until->bytes - outcome.from->bytes) / window_ns;
  }
  const double lagging = share(results.lagging_flows, results.measured_flows);
  const bool overloaded = achieved_gbps < kOverload * offered_gbps;
  const bool held = lagging <= kMaxLagging && achieved_gbps >= kMinDelivered * offered_gbps;
  if (!held || (overloaded && results.unfinished_flows > 0))
    outcome.notices.push_back("the load was more than the network or this host took: offered " +
                              std::to_string(offered_gbps) + " Gbit/s, achieved " + std::to_string(achieved_gbps));
  ordered_json classes = ordered_json::array();
  for (const std::string &name : header_.classes) {
    const auto given = std::find_if(options_.classes.begin(), options_.classes.end(),
                                    [&name](const ClassOptions &each) { return each.name == name; });
    ordered_json shown = {{"class", name}, {"dscp", nullptr}, {"congestion_control", nullptr}};
    if (given != options_.classes.end() && given->dscp)
      shown["dscp"] = *given->dscp;
    if (given != options_.classes.end() && !given->congestion_control.empty())
      shown["congestion_control"] = given->congestion_control;
    classes.push_back(shown);
  }
  add({{"event", "summary"},
       {"ended", outcome.ended},
       {"start_ns", outcome.start_ns},
       {"planned_flows", outcome.planned_flows},
       {"due_flows", results.due_flows.load()},
       {"started_flows", results.started_flows.load()},
       {"finished_flows", results.finished_flows.load()},
       {"unfinished_flows", results.unfinished_flows.load()},
       {"measured_flows", results.measured_flows.load()},
       {"offered_gbps", offered_gbps},
       {"achieved_gbps", achieved_gbps},
       {"schedule_held", results.measured_flows > 0 ? ordered_json(held) : ordered_json(nullptr)},
       {"lagging_share", lagging},
       {"lateness_us", results.lateness_ns.json(1e3)},
       {"completion_us", results.completion_ns.json(1e3)},
       {"slowdown", results.slowdown_per_mil.json(1e3)},
       {"connections", outcome.connections},
       {"classes", classes},
       {"threads", options_.threads},
       {"real_time_priority", outcome.real_time},
       {"notices", outcome.notices}});
}

void Report::flows(const Results &results) {
  std::vector<const Finished *> finished;
  for (const Finished &flow : results.finished_list())
    finished.push_back(&flow);
  std::sort(finished.begin(), finished.end(),
            [](const Finished *one, const Finished *other) { return one->launch.number < other->launch.number; });
  for (const Finished *flow : finished) {
    std::string line = flow_line("flow", flow->launch);
    append(line, "start_ns", flow->start_ns);
    append(line, "end_ns", flow->end_ns);
    add_line(line + '}');
  }
  for (const Unfinished &flow : results.unfinished_list()) {
    std::string line = flow_line("unfinished", flow.launch);
    if (flow.start_ns != 0)
      append(line, "start_ns", flow.start_ns);
    append(line, "sent_bytes", static_cast<Nanos>(flow.sent_bytes));
    add_line(line + ",\"why\":" + ordered_json(flow.why).dump() + '}');
  }
}

// The line is assembled without the JSON library, because there may be a million such lines.
std::string Report::flow_line(const char *event, const Launch &launch) const {
  std::string line = std::string("{\"event\":\"") + event + '"';
  append(line, "flow", static_cast<Nanos>(launch.number));
  append(line, "bytes", static_cast<Nanos>(launch.flow.bytes));
  line.append(",\"destination\":").append(ordered_json(header_.destinations[launch.flow.destination]).dump());
  line.append(",\"class\":").append(ordered_json(header_.classes[launch.flow.flow_class]).dump());
  line.append(launch.measured ? ",\"measured\":true" : ",\"measured\":false");
  append(line, "intended_ns", launch.intended_ns);
  return line;
}

void Report::error(const std::string &message) {
  add({{"event", "error"}, {"message", message}});
  lines_.finish(kReaderTimeoutMs);
}

void Report::add(const ordered_json &event) {
  add_line(event.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

// Waits for a slow reader only until it was too slow once.
void Report::add_line(const std::string &line) {
  lines_.add(line);
  if (lines_.pending_bytes() > kBatchBytes && lines_.dropped() == 0)
    lines_.finish(kReaderTimeoutMs);
}

} // namespace crossgen
