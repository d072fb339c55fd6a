// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/program.hpp"

#include "native/control/secret.hpp"
#include "native/drop_privileges.hpp"
#include "native/errors.hpp"
#include "trainers/replay/record.hpp"
#include "trainers/replay/worker.hpp"

#include <cstring>
#include <functional>
#include <iostream>
#include <sched.h>

namespace replay {
namespace {

enum ExitStatus { kDone = 0, kFailed = 1, kStopped = 3 }; // 2 is bad usage

// Gives the worker real-time priority, because a late worker sends a burst in place of a steady rate. It sleeps most of
// the time, and the kernel reserves CPU time for others (sched_rt_runtime_us).
void go_first() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0)
    std::cerr << "replay: no real-time priority (" << std::strerror(errno) << "): a busy CPU will make it late\n";
}

void play_worker(const Options &options, Network &network, Record &record) {
  native::Control control;
  network.listen(options);
  go_first();
  native::step_down();
  const std::string secret = native::parse_secret(control.await_line());
  Worker worker(options, network.connect(options, secret, control), control, record);
  record.ready();
  worker.play();
  worker.end();
  record.done();
}

// Writes the last lines of the record. Does nothing more if its reader is gone.
int last_words(Record &record, ExitStatus status, const std::function<void()> &speak) {
  try {
    speak();
    record.finish();
  } catch (const native::Stopped &) {
  }
  return status;
}

int run(const Options &options, Network &network) {
  Record record;
  try {
    play_worker(options, network, record);
    record.finish();
    return kDone;
  } catch (const native::Stopped &reason) {
    return last_words(record, kStopped, [&] { record.stopped(reason.what()); });
  } catch (const std::exception &error) {
    std::cerr << "replay: " << error.what() << '\n';
    return last_words(record, kFailed, [&] { record.error(error.what()); });
  }
}

} // namespace

int play(int argc, char **argv, Network &network) {
  const auto options = parse_options(argc, argv);
  if (const int *status = std::get_if<int>(&options))
    return *status;
  return run(std::get<Options>(options), network);
}

} // namespace replay
