// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace sampler {

struct Options {
  std::string name = "sampler";
  native::Nanos port_period_ns = 10'000'000;
  native::Nanos machine_period_ns = 1'000'000'000;
  bool cpu = false;
  std::vector<std::string> interfaces; // none: all but loopback
  pid_t netns_of_pid = 0;              // 0: the network namespace that we are in
  bool queues = false;
  std::string ecn_maps; // "": none
};

// The options, or the exit status when the command line asked for help (0) or was wrong (2, said on standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace sampler
