// SPDX-License-Identifier: Apache-2.0
// Jobs on their way through their phases: their workers compute, post messages and wait for them.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/hosts.hpp"

#include <span>
#include <vector>

namespace packets {

// The bytes that a queue pair takes in a phase of each iteration.
struct Message {
  std::uint32_t pair;
  Bytes bytes;
  Bytes offset; // in what the pair takes in an iteration
  Bytes lead;   // how far it may be ahead of each of its feeders
  std::vector<std::uint32_t> feeders;
};

struct Phase {
  Picos length; // of computing, or of sending alone
  bool sends;
  std::vector<Message> messages;
};

class CrossTraffic;

class Jobs {
public:
  Jobs(EventQueue &events, Hosts &hosts, CrossTraffic &cross_traffic)
      : events_(events), hosts_(hosts), cross_traffic_(cross_traffic) {}

  // Computing times of iteration i are multiplied by `stretches[i]`, cyclically.
  std::uint32_t add_job(const job_plan &plan, std::span<const double> stretches);
  // The next phase of a job. A compute phase has no messages.
  void add_phase(std::uint32_t job, Picos length, bool sends);
  // A message of the job's last phase, and the places of its feeders among the phase's.
  void add_message(std::uint32_t job, std::uint32_t pair, std::uint32_t sender, std::uint32_t receiver, Bytes bytes,
                   Bytes lead, std::span<const std::uint32_t> feeders);

  std::size_t worker_count() const { return workers_.size(); }
  std::size_t job_count() const { return jobs_.size(); }
  void begin(); // schedules the first phases and the departures
  void enter_next_phase(std::uint32_t worker, Picos now);
  void end(std::uint32_t job, Picos now);

  // A queue pair without workers belongs to cross traffic, to which the call is passed on.
  void message_taken(const QueuePair &pair, Picos now);    // The sender has its acknowledgement.
  void message_received(const QueuePair &pair, Picos now); // The receiver has all that it waits for.

  std::size_t running() const { return running_; }
  Picos last_end() const { return last_end_; }
  std::int64_t completed(std::uint32_t job) const;
  const std::vector<iteration_record> &records(std::uint32_t job, std::uint32_t rank) const;

private:
  struct Worker {
    std::uint32_t job;
    int phase = -1;
    int pending = 0; // messages that the present phase waits for
    std::int64_t iteration = 0;
    Picos started = 0, compute_end = -1, delay = 0;
    bool is_done = false;
    std::vector<std::vector<std::uint32_t>> out, in; // by phase: places of its messages
    std::vector<iteration_record> records;
  };

  struct Job {
    job_plan plan;
    std::vector<double> stretches;
    std::uint32_t first_worker = 0;
    std::uint32_t working = 0; // workers that have iterations left
    bool ended = false;
    std::vector<Phase> phases;
    std::vector<std::uint32_t> pairs;
  };

  void enter_sending(std::uint32_t worker, Picos now);
  void end_iteration(std::uint32_t worker, Picos now);
  void settle(std::uint32_t worker, Picos now);
  Bytes begin_of(const Message &message, std::int64_t iteration) const;

  EventQueue &events_;
  Hosts &hosts_;
  CrossTraffic &cross_traffic_;
  std::vector<Job> jobs_;
  std::vector<Worker> workers_;
  std::vector<Bytes> pair_bytes_; // in an iteration, by queue pair
  std::size_t running_ = 0;
  Picos last_end_ = 0;
};

} // namespace packets
