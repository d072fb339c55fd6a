// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/wire.hpp"
#include "crossgen/results/results.hpp"
#include "crossgen/send/poller.hpp"

#include <deque>
#include <optional>

namespace crossgen {

class Connection;

// A sink, and whether it was lost.
class Target {
public:
  explicit Target(Destination destination) : destination_(std::move(destination)) {}

  const Destination &destination() const { return destination_; }
  bool lost() const { return lost_; }

  // Marks the sink as lost; only the first reason is stored.
  void lose(const std::string &why);
  std::string why() const;

private:
  Destination destination_;
  std::atomic<bool> lost_ = false;
  mutable PiMutex mutex_;
  std::string why_;
};

// The connections to one sink for one class. A flow takes an idle connection, or waits for the first that becomes idle;
// flows wait in order. With fresh connections each flow waits for its own new connection, and a single idle one watches
// the sink.
class Pool {
public:
  Pool(Target &target, ClassOptions flow_class, const SendOptions &options, Results &results, Bell &bell)
      : target_(target), class_(std::move(flow_class)), options_(options), results_(results), bell_(bell) {}

  // Sends a flow on an idle connection, or queues it.
  void launch(const Launch &launch);

  // Returns a connection to the pool, because it is new or its flow has ended.
  void release(Connection &connection);

  // Calls by Connector, which opens connections.
  bool wants_more() const;
  void connecting() { change_connecting(1); }
  void gave_up_connecting() { change_connecting(-1); }
  void connected(Connection &connection);
  void opened();       // as connected(), for a fresh connection, which is never idle
  void reconnecting(); // a fresh connection was closed without an answer, and its flow gets another one

  // Removes and returns a flow that waits for a fresh connection, if there is one.
  std::optional<Launch> take();
  // Reports that the flow of a fresh connection has ended.
  void ended();

  // Wakes the thread that opens connections.
  void wake() const { bell_.ring(); }

  // Marks the sink as lost, because it is gone or violates the protocol.
  void lose(const std::string &why);

  unsigned open() const;
  std::size_t waiting() const;

  // Returns true if no flow is under way or can still start.
  bool at_rest() const;

  // Reports waiting flows as unfinished. Call only after all other threads have ended.
  void give_up_waiting();

  Target &target() const { return target_; }
  const ClassOptions &flow_class() const { return class_; }

private:
  void start(Connection &connection, const Launch &launch) const;
  void change_connecting(int by);
  bool short_of_idle() const;

  Target &target_;
  ClassOptions class_;
  const SendOptions &options_;
  Results &results_;
  Bell &bell_;
  mutable PiMutex mutex_;
  std::vector<Connection *> idle_;
  std::deque<Launch> waiting_;
  unsigned open_ = 0;
  unsigned connecting_ = 0;
};

} // namespace crossgen
