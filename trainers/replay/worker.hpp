// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control/control.hpp"
#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/options.hpp"
#include "trainers/replay/playback/jitter.hpp"
#include "trainers/replay/playback/pacing.hpp"
#include "trainers/replay/record.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace replay {

// Plays a worker's iterations, one after the other without a gap.
class Worker {
public:
  Worker(const Options &options, Connections connections, native::Control &control, Record &record);

  // Waits for `start MONOTONIC_NS` on standard input, then plays all iterations, or those before the job departs.
  // Throws native::Failure if a peer dies, and native::Stopped on a request to end.
  void play();

  // Ends the job after the last iteration: waits until every byte is acknowledged, and records the flows. It keeps
  // connections until the peers that it receives from have ended too, so that no peer takes the end for a death.
  void end();

private:
  // An outgoing connection, and its state in the present phase.
  struct Out {
    std::unique_ptr<Connection> connection;
    std::uint64_t sent = 0;
    std::uint64_t answers = 0; // answers received and not yet used by a finished phase
    bool blocked = false;      // it takes no more for now
  };

  // An incoming connection. Bytes of the next phase, which a sender that is ahead sends early, count for that phase.
  struct In {
    std::unique_ptr<Connection> connection;
    std::uint64_t received = 0;
    std::uint64_t expected = 0; // bytes of the whole job still to be received
    bool answered = false;
    bool ended = false;
  };

  // A connection's part in a phase.
  struct Part {
    std::size_t place; // in out_ or in_
    Pace pace;
    bool answered;                    // the receiver says that it has everything
    std::vector<std::size_t> feeders; // places in in_ of the connections whose bytes it forwards
  };

  // The connections' parts in a phase.
  struct Plan {
    std::vector<Part> sends;
    std::vector<Part> receives;
  };

  struct Departed {};

  Plan plan(const Phase &phase) const;
  native::Nanos wait_for_start();
  void keep_timetable();
  void play_iteration(double compute_factor);
  void play_phase(const Phase &phase, Plan &plan, double compute_factor);
  void communicate(Plan &plan);

  void wait(std::optional<native::Nanos> deadline_ns);
  void wait_until(native::Nanos deadline_ns);
  void receive(In &in);
  void take_answer(Out &out);
  void answer(const Plan &plan);
  void send_all(const Plan &plan, native::Nanos elapsed_ns);
  void send(const Part &part, native::Nanos elapsed_ns);
  std::uint64_t fed(const Part &part) const;
  void advise_receivers(const Plan &plan);
  void advise_senders(const Plan &plan);
  bool all_sent(const Plan &plan) const;
  bool all_received(const Plan &plan) const;
  bool all_answered(const Plan &plan) const;
  bool all_left() const;
  bool all_acknowledged() const;
  std::optional<native::Nanos> next_look(const Plan &plan, native::Nanos now_ns) const;
  [[noreturn]] void fail_peer(const Connection &connection, int error) const;

  const Options &options_;
  std::vector<Out> out_;
  std::vector<In> in_;
  std::vector<Plan> plans_; // by phase
  native::Control &control_;
  Record &record_;
  Jitter jitter_;
  std::vector<pollfd> polled_;
  Iteration iteration_;
  native::Nanos phase_start_ns_ = 0; // after computing, as planned: that we woke late does not delay the job
  native::Nanos start_ns_ = 0;       // as agreed
  std::optional<native::Nanos> departs_ns_;
  bool started_ = false;
  bool departed_ = false;
  bool ended_ = false;
};

} // namespace replay
