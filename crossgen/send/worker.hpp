// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/send/poller.hpp"

#include <atomic>
#include <thread>

namespace crossgen {

// Serves the connections that its poller watches, on a thread of its own.
class Worker {
public:
  Worker();
  ~Worker() { stop(); }

  const Poller &poller() const { return poller_; }
  void stop();

private:
  void run();

  Poller poller_;
  Bell bell_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

} // namespace crossgen
