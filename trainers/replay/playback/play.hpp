// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control/control.hpp"
#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/options.hpp"

#include <string>

namespace replay {

// By which way bytes go from worker to worker; a program has one. Both calls throw native::Failure.
class Way {
public:
  virtual ~Way() = default;

  // Listens for peers, as root if we are.
  virtual void listen(const Options &options) = 0;

  // The connections to and from all peers, who know `secret`.
  virtual Connections connect(const Options &options, const std::string &secret, native::Control &control) = 0;
};

// The whole program: plays one worker of a job. The exit status.
int play(int argc, char **argv, Way &way);

} // namespace replay
