// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/send/connection.hpp"
#include "crossgen/send/worker.hpp"

#include <list>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>

namespace crossgen {

// Opens connections for pools that want more. The caller polls its sockets, so it never blocks.
class Connector {
public:
  Connector(std::vector<std::unique_ptr<Pool>> &pools, std::vector<std::unique_ptr<Worker>> &workers,
            const std::string &secret, const SendOptions &options, Results &results);

  // Begins the wanted connections, unless a sink was unreachable a moment ago.
  void begin_wanted();

  void add_interests(std::vector<pollfd> &fds) const;

  // Returns when to call handle() even if no socket is ready, at most `latest_ns`.
  native::Nanos deadline(native::Nanos latest_ns) const;

  // Handles the polled sockets that add_interests() added.
  void handle(std::span<const pollfd> ready);

  // Returns why the last attempt failed.
  const std::string &trouble() const { return trouble_; }

  std::size_t opened() const { return opened_; }

  // Returns the bytes acknowledged by TCP, over all connections ever opened.
  std::uint64_t acknowledged_bytes() const;

  // Reports the flows of unfinished attempts as unfinished.
  void give_up_flows();

private:
  // A connection without the sink's answer yet. A flow's attempt is repeated until the flow has an open connection.
  struct Attempt {
    native::Fd fd; // none between two attempts
    Pool *pool;
    native::Nanos began_ns;     // the first attempt
    std::optional<Launch> flow; // that it is for
    bool started = false;       // the flow is reported as started
    native::Nanos retry_ns = 0; // when the next attempt begins
    std::string trouble = "no answer";
    bool has_sent_hello = false;
    Incoming<Acceptance> acceptance = {};
  };

  void begin(Pool &pool);
  void failed(const std::string &trouble);
  bool retry(Attempt &attempt, const std::string &why);
  void retry_unanswered(const Connection &connection);
  bool goes_on(Attempt &attempt, short events);
  void send_hello(Attempt &attempt) const;
  bool answered(Attempt &attempt);
  Connection &open(Attempt &attempt);
  void send_flow(Attempt &attempt);
  void unfinished(const Attempt &attempt, const std::string &why) const;
  void bury();

  std::vector<std::unique_ptr<Pool>> &pools_;
  std::vector<std::unique_ptr<Worker>> &workers_;
  std::string hello_;
  std::optional<Endpoint> source_;
  std::size_t most_attempts_;
  Results &results_;
  std::list<Attempt> attempts_;
  std::list<Connection> connections_;
  std::size_t opened_ = 0;
  std::uint64_t buried_bytes_ = 0;
  std::size_t next_worker_ = 0;
  native::Nanos next_try_ns_ = 0;
  std::string trouble_ = "no answer";
};

} // namespace crossgen
