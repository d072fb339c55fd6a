// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/wire.hpp"
#include "crossgen/results/results.hpp"
#include "crossgen/send/poller.hpp"

#include <deque>
#include <optional>

namespace crossgen {

class Connection;

// A sink, and whether it is still there.
class Target {
public:
  explicit Target(Destination destination) : destination_(std::move(destination)) {}

  const Destination &destination() const { return destination_; }
  bool lost() const { return lost_; }

  // The first reason is kept.
  void lose(const std::string &why);
  std::string why() const;

private:
  Destination destination_;
  std::atomic<bool> lost_ = false;
  mutable PiMutex mutex_;
  std::string why_;
};

// The connections to one sink for one class. A flow takes one that is idle; if all are busy it waits for the first to
// become so, and no other flow waits for it. Where connections are fresh, each flow waits for one of its own, and the
// only idle one stands for the sink.
class Pool {
public:
  Pool(Target &target, ClassOptions flow_class, const SendOptions &options, Results &results, Bell &bell)
      : target_(target), class_(std::move(flow_class)), options_(options), results_(results), bell_(bell) {}

  void launch(const Launch &launch);

  // The connection has nothing to do: it is new, or its flow has ended.
  void release(Connection &connection);

  // For who sets up connections.
  bool wants_more() const;
  void connecting() { change_connecting(1); }
  void gave_up_connecting() { change_connecting(-1); }
  void connected(Connection &connection);
  void opened(); // the same for a fresh one, which is never idle

  // A flow that is to have a fresh connection, if there is one.
  std::optional<Launch> take();
  // A fresh connection's flow is done.
  void ended();

  // The sink is gone, or does not keep to the protocol.
  void lose(const std::string &why);

  unsigned open() const;
  std::size_t waiting() const;

  // Whether all flows have ended, as far as they ever will.
  bool at_rest() const;

  // Tells the results of flows that still wait. Only once all other threads have ended.
  void give_up_waiting();

  Target &target() const { return target_; }
  const ClassOptions &flow_class() const { return class_; }

private:
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
