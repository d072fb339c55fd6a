// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/sender.hpp"

#include "crossgen/results/report.hpp"
#include "crossgen/send/clock_watch.hpp"
#include "crossgen/send/connector.hpp"
#include "crossgen/send/launcher.hpp"
#include "native/control/control.hpp"
#include "native/control/secret.hpp"
#include "native/drop_privileges.hpp"

#include <algorithm>
#include <linux/capability.h>

namespace crossgen {
namespace {

using native::Nanos;

constexpr Nanos kConnectTimeoutNs = 20'000'000'000;
constexpr Nanos kTickNs = 1'000'000'000;
constexpr Nanos kConnectLookNs = 50'000'000;
constexpr Nanos kDrainLookNs = 2'000'000;

// The header and the number of flows of a load file that was read to its end without an error.
struct Load {
  LoadHeader header;
  std::uint64_t flows = 0;
};

Load check_load(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw native::system_failure("cannot open " + path);
  LoadReader reader(file, path);
  for (Flow flow; reader.next(flow);)
    ;
  return {reader.header(), reader.flows()};
}

class Sender {
public:
  Sender(const SendOptions &options, const std::string &secret, Load load, native::Control &control)
      : options_(options), load_(std::move(load)), control_(control), results_(options, load_.flows),
        report_(options_, load_.header) {
    make_pools();
    connector_.emplace(pools_, workers_, secret, options, results_);
    launcher_.emplace(options, pools_, results_, bell_); // opens the load file, which may be root's
    native::step_down({CAP_NET_ADMIN, CAP_SYS_NICE});    // for classes' congestion control, and the launcher's priority
    for (unsigned i = 0; i < options.threads; i++)
      workers_.push_back(std::make_unique<Worker>());
    outcome_.planned_flows = load_.flows;
  }

  // Throws native::Failure. After the start, it reports the results first.
  void run() {
    connect();
    report_.ready(load_.flows);
    outcome_.start_ns = wait_for_start();
    outcome_.ended = "done";
    try {
      send();
    } catch (const native::Stopped &reason) {
      outcome_.ended = reason.what();
    } catch (const native::Failure &reason) {
      outcome_.ended = reason.what();
      end();
      throw;
    }
    end();
  }

private:
  void make_pools() {
    for (const std::string &name : load_.header.destinations)
      targets_.push_back(std::make_unique<Target>(find_destination(name)));
    for (const auto &target : targets_)
      for (const std::string &name : load_.header.classes)
        pools_.push_back(std::make_unique<Pool>(*target, find_class(name), options_, results_, bell_));
  }

  Destination find_destination(const std::string &name) const {
    for (const Destination &destination : options_.destinations)
      if (destination.name == name)
        return destination;
    throw native::Failure("--to: expected " + name + "=IPV4_ADDRESS:PORT, a destination of " + options_.load_path +
                          ", found none");
  }

  ClassOptions find_class(const std::string &name) const {
    for (const ClassOptions &each : options_.classes)
      if (each.name == name)
        return each;
    return {name, std::nullopt, ""};
  }

  // Waits for sockets and the bell, until the deadline at most.
  void look(Nanos deadline_ns) {
    connector_->begin_wanted();
    std::vector<pollfd> fds{{bell_.fd(), POLLIN, 0}};
    connector_->add_interests(fds);
    control_.wait(fds, connector_->deadline(deadline_ns));
    bell_.silence();
    connector_->handle(std::span<const pollfd>(fds).subspan(1));
  }

  // Sinks may not listen yet: all are waited for.
  void connect() {
    const Nanos deadline_ns = native::monotonic_ns() + kConnectTimeoutNs;
    while (const Pool *pool = unconnected()) {
      if (pool->target().lost())
        throw native::Failure(pool->target().why() + " before the start");
      if (native::monotonic_ns() > deadline_ns)
        throw native::Failure("cannot reach sink " + pool->target().destination().text() +
                              " within 20 s: " + connector_->trouble());
      look(native::monotonic_ns() + kConnectLookNs);
    }
  }

  const Pool *unconnected() const {
    for (const auto &pool : pools_)
      if (pool->open() < options_.connections)
        return pool.get();
    return nullptr;
  }

  Nanos wait_for_start() {
    std::optional<std::string> line;
    while (!(line = control_.line())) {
      look(native::monotonic_ns() + kTickNs);
      for (const auto &target : targets_)
        if (target->lost())
          throw native::Failure(target->why() + " before the start");
    }
    return native::parse_start(*line);
  }

  void send() {
    const Nanos start_ns = outcome_.start_ns;
    const Nanos end_ns = start_ns + static_cast<Nanos>(load_.header.duration_ns);
    results_.begin(start_ns);
    launcher_->begin(start_ns);
    watch_until(start_ns + options_.warm_up_ns);
    outcome_.from = delivery();
    watch_until(end_ns);
    outcome_.until = delivery();
    drain(end_ns + options_.drain_ns);
  }

  // Ends early when no sink is left.
  void watch_until(Nanos deadline_ns) {
    while (native::monotonic_ns() < deadline_ns && !all_lost())
      watch(std::min(deadline_ns, native::monotonic_ns() + kTickNs));
  }

  void drain(Nanos deadline_ns) {
    while (!(launcher_->ended() && at_rest()) && native::monotonic_ns() < deadline_ns && !all_lost())
      watch(native::monotonic_ns() + kDrainLookNs);
  }

  void watch(Nanos deadline_ns) {
    look(deadline_ns);
    if (const auto step_ns = clock_.look(ClockWatch::offset_now_ns()))
      outcome_.notices.push_back("the UTC clock stepped by " + std::to_string(*step_ns / 1000) +
                                 " us; all times are monotonic and hold");
  }

  bool all_lost() const {
    return std::all_of(targets_.begin(), targets_.end(), [](const auto &target) { return target->lost(); });
  }

  bool at_rest() const {
    return std::all_of(pools_.begin(), pools_.end(), [](const auto &pool) { return pool->at_rest(); });
  }

  Delivery delivery() const { return {native::monotonic_ns(), connector_->acknowledged_bytes()}; }

  // Stops all threads, then reports the results. A Failure is thrown after that.
  void end() {
    if (outcome_.from && !outcome_.until)
      outcome_.until = delivery();
    launcher_->stop();
    for (const auto &worker : workers_)
      worker->stop();
    for (const auto &pool : pools_)
      pool->give_up_waiting();
    connector_->give_up_flows();
    outcome_.connections = connector_->opened();
    outcome_.real_time = launcher_->goes_first();
    if (!outcome_.real_time)
      outcome_.notices.push_back("no real-time priority for launches: a busy CPU will make them late");
    report_.results(results_, outcome_);
    try {
      check();
    } catch (const native::Failure &error) {
      report_.error(error.what());
      throw;
    }
  }

  void check() const {
    launcher_->check();
    for (const auto &target : targets_)
      if (target->lost())
        throw native::Failure(target->why() + "; " + std::to_string(results_.unfinished_flows) +
                              " flows are unfinished");
  }

  const SendOptions &options_;
  Load load_;
  native::Control &control_;
  Results results_;
  Report report_;
  Bell bell_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<std::unique_ptr<Pool>> pools_;
  // Threads are declared, and so end, after what they use: workers serve the connector's connections.
  std::optional<Connector> connector_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<Launcher> launcher_;
  ClockWatch clock_{ClockWatch::offset_now_ns()};
  Outcome outcome_;
};

} // namespace

void run_send(const SendOptions &options) {
  Load load = check_load(options.load_path);
  if (options.warm_up_ns >= static_cast<Nanos>(load.header.duration_ns))
    throw native::Failure("--warm-up-s: expected less than the load's duration, " +
                          std::to_string(static_cast<double>(load.header.duration_ns) / 1e9) + " s");
  allow_descriptors(std::uint64_t{options.most_connections} * load.header.destinations.size() *
                    load.header.classes.size());
  native::Control control; // before any thread starts: they inherit the signals that it blocks
  const std::string secret = native::parse_secret(control.await_line());
  Sender(options, secret, std::move(load), control).run();
}

} // namespace crossgen
