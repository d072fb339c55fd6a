// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainers/replay/playback/job.hpp"

#include <variant>

namespace replay {

struct Options {
  Job job;
  unsigned rank = 0;

  const Peer &self() const { return job.workers[rank]; }
};

// Returns the options, or the exit status if the command line asks for help (0) or is wrong (2, with a message on
// standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace replay
