// SPDX-License-Identifier: Apache-2.0
// The output of replay: one JSON object on each line. README.md describes the fields.
#pragma once

#include "native/clock.hpp"
#include "native/line_writer.hpp"
#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/options.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unistd.h>

namespace replay {

// One instant on both clocks.
struct Moment {
  native::Nanos monotonic_ns = 0;
  native::Nanos utc_ns = 0;

  static Moment now() { return {native::monotonic_ns(), native::utc_ns()}; }

  // Returns the moment of a recent instant of the monotonic clock.
  static Moment at(native::Nanos monotonic_ns) {
    const Moment present = now();
    return {monotonic_ns, present.utc_ns - (present.monotonic_ns - monotonic_ns)};
  }
};

struct Iteration {
  unsigned number = 0;
  Moment start;
  Moment compute_end;
  Moment comm_end;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  native::Nanos late_ns = 0;
  std::optional<native::Nanos> delay_ns; // by the time-shift agent, where there is one
};

class Record {
public:
  void ready();
  void iteration(const Iteration &iteration);
  void flow(const Options &options, const Connection &connection);
  void done();
  void stopped(const std::string &reason);
  void error(const std::string &message);

  // Writes the remaining output, and waits for a slow reader.
  void finish();

private:
  void add(const nlohmann::ordered_json &event);

  native::Lines lines_{STDOUT_FILENO, 64 << 20};
  unsigned iterations_ = 0;
};

} // namespace replay
