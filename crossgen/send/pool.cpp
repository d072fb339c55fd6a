// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/pool.hpp"

#include "crossgen/send/connection.hpp"

#include <algorithm>
#include <mutex>

namespace crossgen {
namespace {

using Guard = std::lock_guard<PiMutex>;

// Connections are set up in time for the next few flows.
constexpr unsigned kSpare = 4;

} // namespace

void Target::lose(const std::string &why) {
  const Guard guard(mutex_);
  if (!lost_)
    why_ = why;
  lost_ = true;
}

std::string Target::why() const {
  const Guard guard(mutex_);
  return why_;
}

void Pool::launch(const Launch &launch) {
  if (target_.lost())
    return results_.unfinished({launch, 0, 0, target_.why()});
  Connection *connection = nullptr;
  bool full = false;
  bool more = false;
  {
    const Guard guard(mutex_);
    if (!options_.fresh && !idle_.empty()) {
      connection = idle_.back(); // the connection used last has the most recent window
      idle_.pop_back();
    } else if (!(full = waiting_.size() >= options_.most_waiting)) {
      waiting_.push_back(launch);
    }
    more = options_.fresh || short_of_idle();
  }
  if (more)
    bell_.ring();
  if (connection)
    start(*connection, launch);
  else if (full)
    results_.unfinished(
        {launch, 0, 0, std::to_string(options_.most_waiting) + " flows were waiting for a connection already"});
}

void Pool::release(Connection &connection) {
  std::optional<Launch> next;
  {
    const Guard guard(mutex_);
    if (options_.fresh || waiting_.empty()) {
      idle_.push_back(&connection);
    } else {
      next = waiting_.front();
      waiting_.pop_front();
    }
  }
  if (next)
    start(connection, *next);
}

void Pool::start(Connection &connection, const Launch &launch) const {
  const native::Nanos now_ns = native::monotonic_ns();
  results_.started(launch, now_ns);
  connection.begin(launch, now_ns);
}

std::optional<Launch> Pool::take() {
  const Guard guard(mutex_);
  if (!options_.fresh || idle_.empty() || waiting_.empty())
    return std::nullopt;
  const Launch next = waiting_.front();
  waiting_.pop_front();
  return next;
}

void Pool::ended() {
  {
    const Guard guard(mutex_);
    open_--;
  }
  bell_.ring(); // a flow may wait for its place
}

void Pool::connected(Connection &connection) {
  opened();
  release(connection);
}

void Pool::opened() {
  const Guard guard(mutex_);
  connecting_--;
  open_++;
}

void Pool::reconnecting() {
  const Guard guard(mutex_);
  open_--;
  connecting_++;
}

void Pool::lose(const std::string &why) {
  target_.lose("sink " + target_.destination().text() + " " + why);
  bell_.ring();
}

bool Pool::wants_more() const {
  const Guard guard(mutex_);
  return !target_.lost() && (open_ + connecting_ < options_.connections || short_of_idle());
}

bool Pool::short_of_idle() const {
  if (options_.fresh)
    return !idle_.empty() && !waiting_.empty() && open_ + connecting_ <= options_.most_connections; // and the idle one
  return idle_.size() + connecting_ < std::min(kSpare, options_.connections) &&
         open_ + connecting_ < options_.most_connections;
}

void Pool::change_connecting(int by) {
  const Guard guard(mutex_);
  connecting_ += static_cast<unsigned>(by);
}

unsigned Pool::open() const {
  const Guard guard(mutex_);
  return open_;
}

std::size_t Pool::waiting() const {
  const Guard guard(mutex_);
  return waiting_.size();
}

bool Pool::at_rest() const {
  const Guard guard(mutex_);
  const bool setting_up = options_.fresh && connecting_ > 0;
  return target_.lost() || (idle_.size() == open_ && waiting_.empty() && !setting_up);
}

void Pool::give_up_waiting() {
  for (const Launch &launch : waiting_)
    results_.unfinished({launch, 0, 0, target_.lost() ? target_.why() : "no connection was free"});
  waiting_.clear();
}

} // namespace crossgen
