// SPDX-License-Identifier: Apache-2.0
// The interface between a worker's playback and the transport of its bytes: sockets (tcp/) or RDMA (rdma/).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace replay {

// Statistics of an outgoing connection at the end of its job; RDMA leaves out the values that only TCP has.
struct Flow {
  std::uint16_t local_port = 0;
  std::uint16_t remote_port = 0;
  std::uint64_t bytes_acked = 0; // payload
  std::optional<std::string> congestion_control = {};
  std::optional<std::uint64_t> retransmitted = {}; // segments, as are the next two
  std::optional<std::uint64_t> delivered = {};
  std::optional<std::uint64_t> delivered_ce = {};
};

// One connection of a transfer to or from the worker `peer`, which has several equal ones. Numbers are unique over
// all channels. Payload goes in one direction, and answers in the other. No call blocks.
class Connection {
public:
  static constexpr std::size_t kMaxBytes = 256 * 1024; // largest number of bytes of one call of send()

  Connection(unsigned peer, unsigned number) : peer_(peer), number_(number) {}
  virtual ~Connection() = default;
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  unsigned peer() const { return peer_; }
  unsigned number() const { return number_; }

  // Returns the descriptor and events to poll; `blocked` is true if the last send() took less than it was given.
  virtual pollfd interest(bool blocked) const = 0;
  // Returns true if poll()'s `revents` say that a blocked connection may take more.
  virtual bool has_room(short revents) const = 0;

  // These calls return a number of bytes, 0 at the end of received data, or -1 with errno, as send(2) and recv(2) do.
  // Received payload is only counted, and discarded. An answer is one byte.
  virtual ssize_t send(std::size_t bytes) = 0;
  virtual ssize_t receive() = 0;
  virtual ssize_t answer() = 0;
  virtual ssize_t take_answers() = 0;

  // These return true if all sent bytes have left this host, and if the peer has acknowledged all of them.
  virtual bool has_left() const = 0;
  virtual bool is_acknowledged() const = 0;

  // These give advice: how many unsent bytes may wait here, and how many must arrive before a wake-up is worth it.
  virtual void limit_unsent(std::uint64_t bytes) = 0;
  virtual void wake_by(std::uint64_t bytes) = 0;

  // Signals the end of the data to the peer.
  virtual void shut() = 0;
  virtual Flow flow() const = 0;

private:
  unsigned peer_;
  unsigned number_;
};

// A worker's connections: `out` to the peers that it sends to in any phase, `in` from the peers that it receives from.
// Both are in the order of their first use in phases and transfers.
struct Connections {
  std::vector<std::unique_ptr<Connection>> out;
  std::vector<std::unique_ptr<Connection>> in;
};

} // namespace replay
