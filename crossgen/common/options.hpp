// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/sockets.hpp"
#include "crossgen/plan/plan.hpp"
#include "native/clock.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace crossgen {

struct PlanOptions {
  PlanSpec spec;
  std::string sizes_path; // empty: web-search
  double scale_sizes = 1;
  Between between = Between::kSteps;
  std::string output;
  bool json = false;
};

struct ShowOptions {
  std::string path;
  bool json = false;
};

struct SinkOptions {
  Endpoint bind;
  unsigned threads = 1;
  unsigned most_connections = 4096;
  unsigned dscp = 0; // of what goes back to senders
};

struct Destination {
  std::string name;
  Endpoint endpoint;

  std::string text() const { return name + " (" + endpoint.text() + ")"; }
};

// How the flows of a class are sent; what is not given is the namespace's own.
struct ClassOptions {
  std::string name;
  std::optional<int> dscp;
  std::string congestion_control;
};

struct SendOptions {
  std::string load_path;
  std::vector<Destination> destinations;
  std::vector<ClassOptions> classes;
  unsigned threads = 1;
  bool fresh = false;              // each flow has a connection of its own, set up when it is due
  unsigned connections = 16;       // to each destination for each class, at the start
  unsigned most_connections = 128; // the same, at any time
  unsigned most_waiting = 100'000; // flows that found no free connection
  unsigned most_results = 1'000'000;
  native::Nanos warm_up_ns = 0;
  native::Nanos drain_ns = 0;
  double line_rate_gbps = 0; // 0: unknown, so there is no slowdown
  double base_rtt_us = 0;
};

using Options = std::variant<PlanOptions, ShowOptions, SinkOptions, SendOptions>;

// The options, or the exit status when the command line asked for help (0) or was wrong (2, said on standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace crossgen
