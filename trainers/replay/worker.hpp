// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control.hpp"
#include "trainers/replay/jitter.hpp"
#include "trainers/replay/options.hpp"
#include "trainers/replay/record.hpp"
#include "trainers/replay/ring.hpp"
#include "trainers/replay/ring_phase.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replay {

// Plays the iterations, one after the other without a gap.
class Worker {
public:
  Worker(const Options &options, Ring ring, native::Control &control, Record &record);

  // Waits for `start MONOTONIC_NS` on standard input, then plays all iterations. Throws native::Failure when a peer
  // dies, native::Stopped when we are told to end.
  void play();

  // After the last iteration: waits until every byte is acknowledged, records the flows, and keeps the connections
  // until the left neighbour has ended too, so nobody takes the end for a death.
  void end();

private:
  // A flow's bytes in the present phase. What the left neighbour, who may be ahead of us, sends of the next phase is
  // carried over.
  struct Flow {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t expected = 0; // of the whole job, still to be received
    bool blocked = false;       // the socket takes no more for now
    bool left_ended = false;
    std::uint64_t receive_quantum = 1;
  };

  native::Nanos wait_for_start();
  void play_iteration(double compute_factor);
  void play_phase(const Phase &phase, double compute_factor);
  void communicate(const RingPhase &phase);
  RingPhase ring_phase(const Phase &phase) const;

  void wait(std::optional<native::Nanos> deadline_ns);
  void wait_until(native::Nanos deadline_ns);
  void receive(unsigned flow);
  void send_all(const RingPhase &phase, native::Nanos elapsed_ns);
  void send(const RingPhase &phase, unsigned flow, native::Nanos elapsed_ns);
  void set_receive_quanta(const RingPhase &phase);
  void set_unsent_limits(std::uint64_t bytes);
  bool all_sent(const RingPhase &phase) const;
  bool all_received(const RingPhase &phase) const;
  bool all_left(int request) const;
  std::optional<native::Nanos> next_look(const RingPhase &phase, native::Nanos now_ns) const;
  [[noreturn]] void fail_peer(const Peer &peer, int error) const;

  const Options &options_;
  Ring ring_;
  native::Control &control_;
  Record &record_;
  Jitter jitter_;
  std::vector<Flow> flows_;
  std::vector<pollfd> polled_;
  Iteration iteration_;
  std::uint64_t unsent_limit_ = 0;
  native::Nanos phase_start_ns_ = 0; // after computing, as planned: that we woke late does not delay the job
  bool started_ = false;
  bool ended_ = false;
};

} // namespace replay
