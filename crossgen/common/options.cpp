// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/options.hpp"

#include "native/errors.hpp"
#include "native/finite.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <thread>

namespace crossgen {
namespace {

using native::finite;

constexpr int kBadUsage = 2;

constexpr const char *kAbout =
    "Generates cross traffic: `plan` writes the flows of a load to a file, `send` sends them over TCP to a `sink`.";

constexpr const char *kSecret =
    "The first line on standard input is `secret TEXT`, 8 to 64 characters that the senders and sinks of a run share.";

constexpr const char *kExitStatus =
    "Exit status: 0 done, or ended on request; 1 failed (said on standard error); 2 bad usage.";

// The values of the command line, before they are checked together.
struct Given {
  double duration_s = 0;
  double burst_width_us = 0;
  double burst_period_ms = 10;
  double burst_height = 3;
  Volumes volumes = Volumes::kDrawn;
  std::string bind;
  std::vector<std::string> destinations;
  std::vector<std::string> classes;
  double warm_up_s = 0;
  double drain_s = 10;
};

std::uint64_t nanos(double value, double unit_ns) { return static_cast<std::uint64_t>(std::llround(value * unit_ns)); }

void declare_plan(CLI::App &app, PlanOptions &plan, Given &given) {
  static const std::map<std::string, Gaps> kGaps = {{"poisson-process", Gaps::kPoissonProcess},
                                                    {"poisson-distributed", Gaps::kPoissonDistributed}};
  static const std::map<std::string, Kind> kKinds = {{"consistent", Kind::kConsistent},
                                                     {"checkpoint", Kind::kCheckpoint},
                                                     {"incast", Kind::kIncast},
                                                     {"kv-cache", Kind::kKvCache}};
  static const std::map<std::string, Between> kBetween = {{"linear", Between::kLinear}, {"steps", Between::kSteps}};
  static const std::map<std::string, Volumes> kVolumes = {{"drawn", Volumes::kDrawn}, {"exact", Volumes::kExact}};
  app.add_option("--load-gbps", plan.spec.load_gbps, "mean load of the flows' bytes")
      ->required()
      ->check(finite(1e-6, 1e4));
  auto *kind = app.add_option("--kind", plan.spec.kind, "kind of load; `consistent` with --burst-width-us is bursts")
                   ->transform(CLI::CheckedTransformer(kKinds))
                   ->default_str("consistent");
  app.add_option("--unit-bytes", plan.unit_bytes,
                 "of this sender's part of a checkpoint, of a server's block of an incast, or of a token's keys and "
                 "values (default: published ones)")
      ->check(finite(1, 1e12))
      ->needs(kind);
  app.add_option("--duration-s", given.duration_s, "time in which flows start")->required()->check(finite(1e-3, 1e6));
  app.add_option("--output", plan.output, "load file to write; `-`: standard output")->required();
  app.add_option("--destinations", plan.spec.destinations, "names of the sinks: A,B,... (each flow goes to any one)")
      ->delimiter(',')
      ->default_val(std::vector<std::string>{"sink"});
  app.add_option("--seed", plan.spec.seed, "of all that is drawn")
      ->check(native::whole_64_bits())
      ->capture_default_str();
  app.add_option("--gaps", plan.spec.gaps, "how gaps between flows are drawn")
      ->transform(CLI::CheckedTransformer(kGaps))
      ->default_str("poisson-process");
  app.add_option("--sizes", plan.sizes_path, "file of lines `BYTES CUMULATIVE_PROBABILITY` (default: web-search)");
  app.add_option("--sizes-between", plan.between, "what lies between the listed sizes: nothing, or all evenly")
      ->transform(CLI::CheckedTransformer(kBetween))
      ->default_str("steps");
  app.add_option("--scale-sizes", plan.scale_sizes, "multiply all sizes; the load stays as given")
      ->check(finite(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--burst-width-us", given.burst_width_us, "send bursts (Algorithm 2), each this long")
      ->check(finite(1, 1e7));
  app.add_option("--burst-period-ms", given.burst_period_ms, "from one burst's start to the next one's")
      ->check(finite(1e-2, 1e5))
      ->capture_default_str();
  app.add_option("--burst-height", given.burst_height, "of a burst, in mean loads")
      ->check(finite(1, 1e6))
      ->capture_default_str();
  app.add_option("--volumes", given.volumes, "bytes between bursts: what the scaled sizes draw, or exactly their share")
      ->transform(CLI::CheckedTransformer(kVolumes))
      ->default_str("drawn");
  app.add_flag("--json", plan.json, "say what the load holds as JSON");
}

void declare_show(CLI::App &app, ShowOptions &show) {
  app.add_option("file", show.path, "load file")->required();
  app.add_flag("--json", show.json, "only what it holds, as JSON on standard output");
}

void declare_threads(CLI::App &app, unsigned &threads) {
  threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  app.add_option("--threads", threads, "that send or receive")->check(CLI::Range(1u, 64u))->capture_default_str();
}

void declare_sink(CLI::App &app, SinkOptions &sink, Given &given) {
  app.add_option("--bind", given.bind, "IPV4_ADDRESS:PORT to listen at; port 0 is chosen and printed")->required();
  declare_threads(app, sink.threads);
  app.add_option("--dscp", sink.dscp, "of acknowledgements")->check(CLI::Range(0u, 63u))->capture_default_str();
  app.add_option("--most-connections", sink.most_connections, "open at any time")
      ->check(CLI::Range(1u, 65'536u))
      ->capture_default_str();
}

void declare_send(CLI::App &app, SendOptions &send, Given &given) {
  app.add_option("--load", send.load_path, "load file, of `crossgen plan`")->required();
  app.add_option("--to", given.destinations, "NAME=IPV4_ADDRESS:PORT of each of the load's sinks")
      ->required()
      ->delimiter(',');
  app.add_option("--bind", given.bind,
                 "IPV4_ADDRESS:PORT to send from, as routes choose it by default; port 0 is chosen");
  app.add_option("--class", given.classes, "NAME[:dscp=0..63][:cc=CONGESTION_CONTROL] of a class of flows");
  declare_threads(app, send.threads);
  app.add_flag("--fresh-connections", send.fresh, "set up a connection for each flow, when it is due");
  app.add_option("--connections", send.connections, "set up beforehand, to each sink for each class")
      ->check(CLI::Range(1u, 4'096u))
      ->capture_default_str();
  app.add_option("--most-connections", send.most_connections, "that these may grow to when all are busy")
      ->check(CLI::Range(1u, 4'096u))
      ->capture_default_str();
  app.add_option("--most-waiting", send.most_waiting, "flows that may wait for a free connection; others are given up")
      ->check(CLI::Range(0u, 10'000'000u))
      ->capture_default_str();
  app.add_option("--most-results", send.most_results, "flows that are listed one by one; all others are counted")
      ->check(CLI::Range(0u, 100'000'000u))
      ->capture_default_str();
  app.add_option("--warm-up-s", given.warm_up_s, "leave flows that are due before out of what is measured")
      ->check(finite(0, 1e6))
      ->capture_default_str();
  app.add_option("--drain-s", given.drain_s, "wait this long, at most, for flows under way at the load's end")
      ->check(finite(0, 1e6))
      ->capture_default_str();
  app.add_option("--line-rate-gbps", send.line_rate_gbps, "of the path: slowdown compares with it")
      ->check(finite(1e-6, 1e4));
  app.add_option("--base-rtt-us", send.base_rtt_us, "of the path when idle")->check(finite(0, 1e9));
}

// The kinds of options that belong to some kinds of loads only.
void check_kind(PlanOptions &plan, const Given &given) {
  const bool is_consistent = plan.spec.kind == Kind::kConsistent;
  const auto refuse = [&plan](const char *option, const char *allowed) {
    throw native::Failure(std::string(option) + ": expected " + allowed + ", found it with --kind " +
                          kind_name(plan.spec.kind));
  };
  if (is_consistent && plan.unit_bytes > 0)
    refuse("--unit-bytes", "a --kind that has units, checkpoint, incast or kv-cache");
  if (!is_consistent && !plan.sizes_path.empty())
    refuse("--sizes", "--kind consistent");
  if (!is_consistent && given.burst_width_us > 0)
    refuse("--burst-width-us", "--kind consistent");
  if (!is_consistent && plan.unit_bytes == 0)
    plan.unit_bytes = published_unit_bytes(plan.spec.kind);
}

void check(PlanOptions &plan, const Given &given) {
  plan.spec.duration_ns = nanos(given.duration_s, 1e9);
  if (given.burst_width_us > 0)
    plan.spec.burst = {nanos(given.burst_width_us, 1e3), nanos(given.burst_period_ms, 1e6), given.burst_height,
                       given.volumes};
  check_kind(plan, given);
  const std::set<std::string> names(plan.spec.destinations.begin(), plan.spec.destinations.end());
  if (names.size() != plan.spec.destinations.size() || names.contains("") || names.size() > 65'535)
    throw native::Failure("--destinations: expected 1 to 65535 names, each once");
}

void check(ShowOptions &, const Given &) {}

void check(SinkOptions &sink, const Given &given) { sink.bind = Endpoint::parse(given.bind); }

Destination parse_destination(const std::string &text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw native::Failure("--to: expected NAME=IPV4_ADDRESS:PORT, found \"" + text + "\"");
  return {text.substr(0, equals), Endpoint::parse(text.substr(equals + 1))};
}

ClassOptions parse_class(const std::string &text) {
  std::istringstream words(text);
  ClassOptions options;
  std::getline(words, options.name, ':');
  for (std::string word; std::getline(words, word, ':');) {
    int dscp = -1;
    if (word.starts_with("dscp=") && CLI::detail::lexical_cast(word.substr(5), dscp) && dscp >= 0 && dscp <= 63)
      options.dscp = dscp;
    else if (word.starts_with("cc=") && word.size() > 3 && word.size() < 3 + 16)
      options.congestion_control = word.substr(3);
    else
      throw native::Failure("--class: expected NAME[:dscp=0..63][:cc=NAME], found \"" + text + "\"");
  }
  return options;
}

void check(SendOptions &send, const Given &given) {
  for (const std::string &text : given.destinations)
    send.destinations.push_back(parse_destination(text));
  if (!given.bind.empty())
    send.source = Endpoint::parse(given.bind);
  for (const std::string &text : given.classes)
    send.classes.push_back(parse_class(text));
  if (send.fresh)
    send.connections = 1; // it only shows that the sink exists, and carries no flows
  if (send.connections > send.most_connections)
    throw native::Failure("--connections: expected at most --most-connections, " +
                          std::to_string(send.most_connections) + ", found " + std::to_string(send.connections));
  send.warm_up_ns = std::llround(given.warm_up_s * 1e9);
  send.drain_ns = std::llround(given.drain_s * 1e9);
}

} // namespace

std::variant<Options, int> parse_options(int argc, char **argv) {
  PlanOptions plan;
  ShowOptions show;
  SinkOptions sink;
  SendOptions send;
  Given given;
  CLI::App app(kAbout, "crossgen");
  try {
    app.footer(kExitStatus);
    app.require_subcommand(1);
    declare_plan(*app.add_subcommand("plan", "write a load file, and say what it holds"), plan, given);
    declare_show(*app.add_subcommand("show", "print a load file as CSV, and what it holds"), show);
    declare_sink(
        *app.add_subcommand("sink", "receive flows and discard them; ends when standard input closes")->footer(kSecret),
        sink, given);
    declare_send(*app.add_subcommand("send", "send a load: prints {\"event\": \"ready\"}, reads `start MONOTONIC_NS` "
                                             "on standard input; ends when that closes")
                      ->footer(kSecret),
                 send, given);
    app.parse(argc, argv);
    const auto checked = [&given](auto &options) -> Options {
      check(options, given);
      return options;
    };
    const std::string command = app.get_subcommands().front()->get_name();
    return command == "plan"   ? checked(plan)
           : command == "show" ? checked(show)
           : command == "sink" ? checked(sink)
                               : checked(send);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  } catch (const native::Failure &error) {
    std::cerr << "crossgen: " << error.what() << '\n';
    return kBadUsage;
  }
}

} // namespace crossgen
