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

// The options, or the exit status when the command line asked for help (0) or was wrong (2, said on standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace replay
