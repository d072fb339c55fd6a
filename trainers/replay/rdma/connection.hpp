// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/network/peer_connections.hpp"
#include "trainers/replay/rdma/credits.hpp"
#include "trainers/replay/rdma/verbs.hpp"

namespace replay::rdma {

// The memory to which a receiver lets its peer write; it is sent when a connection is accepted.
struct Target {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

// A connection by RDMA: an RC queue pair, besides the socket over which the peers met. Each send() writes a chunk with
// an immediate to one buffer of the receiver, which is never read. The receiver returns empty messages with a Word. The
// socket is not used any more, but its end, also by TCP's keepalive, shows a peer's death.
class RdmaConnection final : public Connection {
public:
  // Creates the queue pair and posts its receives. `id` must be bound to a device. Throws native::Failure.
  RdmaConnection(Socket socket, Id id);

  rdma_cm_id *id() const { return id_.get(); }
  Target target() const;
  void aim(const Target &target) { target_ = target; }

  pollfd interest(bool blocked) const override;
  bool has_room(short revents) const override;
  ssize_t send(std::size_t bytes) override;
  ssize_t receive() override;
  ssize_t answer() override;
  ssize_t take_answers() override;
  bool has_left() const override { return under_way_ == 0; }
  bool is_acknowledged() const override { return under_way_ == 0; }
  // Both do nothing, because a NIC sends at once, credits limit the unsent bytes, and completions come by chunk.
  void limit_unsent(std::uint64_t) override {}
  void wake_by(std::uint64_t) override {}
  void shut() override;
  Flow flow() const override;

private:
  void make_queues();
  void watch(int fd);
  bool post_receive();
  bool post(ibv_send_wr request, std::size_t bytes);
  ssize_t say(Word word);
  void look();
  void complete(const ibv_wc &completion);
  std::optional<int> socket_end() const; // 0 where the peer closed it, or why it broke
  ssize_t take(std::uint64_t &count);
  void fail(int error);

  native::Fd socket_;
  Id id_;
  CompletionChannel channel_;
  CompletionQueue completions_;
  Memory memory_;
  QueuePair queue_pair_;
  native::Fd watched_; // channel and socket
  Target target_;
  Credits credits_;
  Untold untold_;
  std::uint32_t under_way_ = 0; // chunks and words that the peer has not acknowledged
  std::uint64_t acked_bytes_ = 0;
  std::uint64_t received_bytes_ = 0; // not reported to the worker yet, as are
  std::uint64_t answers_ = 0;        // these
  int error_ = 0;
};

} // namespace replay::rdma
