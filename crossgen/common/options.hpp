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
  std::string sizes_path; // of kConsistent; empty: web-search
  double unit_bytes = 0;  // of other kinds
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
  unsigned dscp = 0; // of packets back to senders
};

struct Destination {
  std::string name;
  Endpoint endpoint;

  std::string text() const { return name + " (" + endpoint.text() + ")"; }
};

// How the flows of a class are sent; values that are not given are the network namespace's defaults.
struct ClassOptions {
  std::string name;
  std::optional<int> dscp;
  std::string congestion_control;
};

struct SendOptions {
  std::string load_path;
  std::vector<Destination> destinations;
  std::optional<Endpoint> source; // without it, routes choose the address
  std::vector<ClassOptions> classes;
  unsigned threads = 1;
  bool fresh = false;              // each flow opens its own connection when it is due
  unsigned connections = 16;       // opened at the start, for each destination and class
  unsigned most_connections = 128; // largest number, for each destination and class
  unsigned most_waiting = 100'000; // largest number of flows waiting for a connection
  unsigned most_results = 1'000'000;
  native::Nanos warm_up_ns = 0;
  native::Nanos drain_ns = 0;
  double line_rate_gbps = 0; // 0: unknown, so there is no slowdown
  double base_rtt_us = 0;
};

using Options = std::variant<PlanOptions, ShowOptions, SinkOptions, SendOptions>;

// Returns the options, or an exit status: 0 after printing help, 2 for a wrong command line, after a message on
// standard error.
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace crossgen
