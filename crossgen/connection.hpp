// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/pool.hpp"

namespace crossgen {

// A connection to a sink that was welcomed. It carries one flow after the other. The thread that launches a flow sends
// its beginning, so that no wake-up lies between its time and its first byte; the worker whose `poller` watches the
// connection sends the rest.
class Connection {
public:
  Connection(native::Fd fd, Pool &pool, const Poller &poller, Results &results);

  void begin(const Launch &launch);

  // Does what the socket is ready for.
  void handle(std::uint32_t events);

  std::uint64_t acknowledged_bytes() const; // by TCP, since it was set up

  // Tells the results of a flow under way. Only once all other threads have ended.
  void give_up();

private:
  std::uint64_t unsent() const { return sizeof(FlowHeader) + launch_->flow.bytes - sent_; }
  void send_first();
  void send_more();
  void count_sent(ssize_t bytes);
  std::optional<Finished> read_acknowledgement();
  void lose(const std::string &why);

  native::Fd fd_;
  Pool &pool_;
  const Poller &poller_;
  Results &results_;
  PiMutex mutex_; // a launch and its worker's first events may overlap
  std::optional<Launch> launch_;
  native::Nanos start_ns_ = 0;
  bool broken_ = false;
  FlowHeader header_{};
  std::uint64_t sent_ = 0; // of the header and the bytes
  Incoming<Acknowledgement> acknowledgement_;
};

} // namespace crossgen
