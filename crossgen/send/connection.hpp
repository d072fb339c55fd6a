// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/send/pool.hpp"

namespace crossgen {

// Why a connection without an answer is lost, after the name of its sink.
constexpr const char *kRefused = "closed the connection without an answer: check the secret and --most-connections";

// A connection to a sink. An accepted connection carries one flow after the other. A fresh connection carries one flow
// without waiting for the sink's answer, and ends with the flow, or if the sink closes it before. The thread that
// launches a flow sends its beginning, so that no wake-up delays the first byte. The worker whose `poller` watches the
// connection sends the rest.
class Connection {
public:
  Connection(native::Fd fd, Pool &pool, const Poller &poller, Results &results, bool fresh);

  // Begins to send a flow. `start_ns` is now, or for a fresh connection the instant at which the flow's first
  // connection attempt began.
  void begin(const Launch &launch, native::Nanos start_ns);

  // Reads or writes as the polled `events` allow.
  void handle(std::uint32_t events);

  // Returns the bytes acknowledged by TCP since the connection was set up, 0 until the sink has answered: a flow whose
  // connection is lost before is sent again.
  std::uint64_t acknowledged_bytes() const;

  // Returns true if a fresh connection has ended; only its owner still refers to it.
  bool ended() const { return ended_; }

  // Returns the flow of an ended connection that was lost without the sink's answer, so the sink did not take the flow.
  const Launch *unanswered() const { return answered_ ? nullptr : &*launch_; }
  const std::string &why() const { return why_; } // it was lost
  native::Nanos start_ns() const { return start_ns_; }
  Pool &pool() const { return pool_; }

  // Reports the flow under way as unfinished. Call only after all other threads have ended.
  void give_up();

private:
  std::uint64_t unsent() const { return sizeof(FlowHeader) + launch_->flow.bytes - sent_; }
  void send_first();
  void send_more();
  void count_sent(ssize_t bytes);
  template <typename Message> bool read(Incoming<Message> &message) const;
  std::optional<Finished> read_acknowledgement();
  void end();
  void lose(const std::string &why);

  native::Fd fd_;
  Pool &pool_;
  const Poller &poller_;
  Results &results_;
  PiMutex mutex_; // a launch and its worker's first events may overlap
  std::optional<Launch> launch_;
  native::Nanos start_ns_ = 0;
  bool broken_ = false;
  const bool fresh_;
  std::atomic<bool> answered_; // the hello
  std::string why_;            // it was lost
  std::atomic<bool> ended_ = false;
  FlowHeader header_{};
  std::uint64_t sent_ = 0; // of the header and the bytes
  Incoming<Acceptance> acceptance_;
  Incoming<Acknowledgement> acknowledgement_;
};

} // namespace crossgen
