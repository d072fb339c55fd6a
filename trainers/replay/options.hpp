// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainers/replay/playback/job.hpp"

#include <variant>

namespace replay {

struct Options {
  Job job;
  unsigned rank = 0;
  double computing = 1; // factor of the worker's own computing times

  const Peer &self() const { return job.workers[rank]; }
};

// Returns the options, or an exit status: 0 after printing help, 2 for a wrong command line, after a message on
// standard error.
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace replay
