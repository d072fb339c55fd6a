// SPDX-License-Identifier: Apache-2.0
// The seam between what a worker plays and how its bytes travel: by sockets (sockets.cpp), or by RDMA (rdma/).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace replay {

// What is known of an outgoing connection when its job is over; what only TCP counts, RDMA leaves out.
struct Flow {
  std::uint16_t local_port = 0;
  std::uint16_t remote_port = 0;
  std::uint64_t bytes_acked = 0; // payload
  std::optional<std::string> congestion_control = {};
  std::optional<std::uint64_t> retransmitted = {}; // segments, as are the next two
  std::optional<std::uint64_t> delivered = {};
  std::optional<std::uint64_t> delivered_ce = {};
};

// One connection of a transfer: to or from the worker `peer`, one of `connections` alike. Payload goes one way on it,
// answers the other. Nothing here blocks.
class Connection {
public:
  static constexpr std::size_t kMostBytes = 256 * 1024; // that one call sends

  Connection(unsigned peer, unsigned number) : peer_(peer), number_(number) {}
  virtual ~Connection() = default;
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  unsigned peer() const { return peer_; }
  unsigned number() const { return number_; }

  // What is to be polled; `blocked` is a connection that took less than it was given.
  virtual pollfd interest(bool blocked) const = 0;
  // Whether a blocked connection may take more, as poll() told.
  virtual bool has_room(short revents) const = 0;

  // As send(2) and recv(2) have it: how many bytes, 0 for the end of what is received, -1 and errno. Nobody looks at
  // the payload: what is received was counted and discarded. An answer is one byte, and so counted.
  virtual ssize_t send(std::size_t bytes) = 0;
  virtual ssize_t receive() = 0;
  virtual ssize_t answer() = 0;
  virtual ssize_t take_answers() = 0;

  // Whether what was sent has left, and whether the peer has acknowledged it.
  virtual bool has_left() const = 0;
  virtual bool is_acknowledged() const = 0;

  // How much may wait here to be sent, and how much must have come before it is worth a wake-up: advice.
  virtual void limit_unsent(std::uint64_t bytes) = 0;
  virtual void wake_by(std::uint64_t bytes) = 0;

  // Tells the peer that nothing more will be sent.
  virtual void shut() = 0;
  virtual Flow flow() const = 0;

private:
  unsigned peer_;
  unsigned number_;
};

// A worker's connections: out to those it sends to in any phase, in from those it receives from; peer by peer in the
// order of phases and transfers.
struct Connections {
  std::vector<std::unique_ptr<Connection>> out;
  std::vector<std::unique_ptr<Connection>> in;
};

} // namespace replay
