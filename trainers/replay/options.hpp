// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"
#include "trainers/replay/profile.hpp"

#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <variant>
#include <vector>

namespace replay {

struct Peer {
  std::string name;
  std::string address;
  in_addr ip{};

  // "s2 (10.77.0.3)"
  std::string text() const { return name == address ? name : name + " (" + address + ")"; }
};

struct Options {
  std::string job;
  unsigned rank = 0;
  std::vector<Peer> workers; // by rank
  std::uint16_t port = 0;
  unsigned flows = 1;
  Profile profile;
  unsigned iterations = 0;
  std::uint64_t seed = 0;
  double jitter = 0;
  native::Nanos start_offset_ns = 0;
  std::uint64_t fingerprint = 0; // of all that every worker of the job must have been given alike

  const Peer &self() const { return workers[rank]; }
  unsigned left_rank() const {
    return (rank + static_cast<unsigned>(workers.size()) - 1) % static_cast<unsigned>(workers.size());
  }
  const Peer &left() const { return workers[left_rank()]; }
  const Peer &right() const { return workers[(rank + 1) % workers.size()]; }
};

// The options, or the exit status when the command line asked for help (0) or was wrong (2, said on standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace replay
