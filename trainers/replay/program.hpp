// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control/control.hpp"
#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/options.hpp"

#include <string>

namespace replay {

// The transport of bytes between workers, of which a program has one. Both calls throw native::Failure.
class Network {
public:
  virtual ~Network() = default;

  // Begins to listen for peers; called before root's rights are dropped.
  virtual void listen(const Options &options) = 0;

  // Returns the connections to and from all peers, which must have `secret`.
  virtual Connections connect(const Options &options, const std::string &secret, native::Control &control) = 0;
};

// Runs the whole program, which plays one worker of a job, and returns the exit status.
int play(int argc, char **argv, Network &network);

} // namespace replay
