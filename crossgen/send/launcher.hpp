// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/send/pool.hpp"

#include <fstream>
#include <memory>
#include <thread>

namespace crossgen {

// Launches each flow of a load at its time, on a thread that only does this.
class Launcher {
public:
  // `pools` has the pools of destination 0 by class, then those of destination 1, and so on.
  Launcher(const SendOptions &options, std::vector<std::unique_ptr<Pool>> &pools, Results &results, Bell &bell);
  ~Launcher() { stop(); }

  void begin(native::Nanos start_ns);

  // Stops launching, within some milliseconds.
  void stop();

  bool ended() const { return ended_; }

  // Returns true if the thread has real-time priority above all other threads.
  bool goes_first() const { return goes_first_; }

  // Throws native::Failure if the load file was damaged after it was checked. Call only after the launcher has ended.
  void check() const;

private:
  void run(native::Nanos start_ns);
  void launch_all(native::Nanos start_ns);
  bool sleep_until(native::Nanos deadline_ns) const;

  const SendOptions &options_;
  std::vector<std::unique_ptr<Pool>> &pools_;
  Results &results_;
  Bell &bell_;
  std::ifstream file_;
  LoadReader reader_;
  std::string failure_;
  std::atomic<bool> goes_first_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

} // namespace crossgen
