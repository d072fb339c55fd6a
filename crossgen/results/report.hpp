// SPDX-License-Identifier: Apache-2.0
// The output of `crossgen send`: one JSON object on each line. README.md describes the fields.
#pragma once

#include "crossgen/results/results.hpp"
#include "native/line_writer.hpp"

#include <optional>
#include <string>
#include <unistd.h>

namespace crossgen {

// The bytes that TCP had delivered to all sinks at an instant.
struct Delivery {
  native::Nanos at_ns = 0;
  std::uint64_t bytes = 0;
};

// The values that the sender reports at its end in addition to the results of flows.
struct Outcome {
  native::Nanos start_ns = 0;
  std::uint64_t planned_flows = 0;
  std::optional<Delivery> from; // begin of the measured window; none if not reached
  std::optional<Delivery> until;
  std::size_t connections = 0;
  bool real_time = false;
  std::string ended; // "done", or the reason for an early end
  std::vector<std::string> notices;
};

class Report {
public:
  Report(const SendOptions &options, const LoadHeader &header) : options_(options), header_(header) {}

  void ready(std::uint64_t planned_flows);
  void results(const Results &results, Outcome outcome);
  void error(const std::string &message);

private:
  void summary(const Results &results, Outcome &outcome);
  void flows(const Results &results);
  std::string flow_line(const char *event, const Launch &launch) const;
  void add(const nlohmann::ordered_json &event);
  void add_line(const std::string &line);

  const SendOptions &options_;
  const LoadHeader &header_;
  native::Lines lines_{STDOUT_FILENO, 16 << 20};
};

} // namespace crossgen
