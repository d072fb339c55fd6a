// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainers/replay/network/connection.hpp"
#include "trainers/replay/network/mesh.hpp"
#include "trainers/replay/rdma/credits.hpp"
#include "trainers/replay/rdma/verbs.hpp"

namespace replay::rdma {

// Where a receiver lets its peer write: what it says when it accepts.
struct Target {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

// A connection by RDMA: an RC queue pair, beside the socket over which the peers met. Payload is written in chunks of
// what is sent at once, each with an immediate, into one place of the receiver's, that nobody reads. Back come empty
// messages with a Word. The socket is silent from then on; by its end, as by TCP's keepalive, a peer's death is seen.
class RdmaConnection final : public Connection {
public:
  // Readies the queue pair and posts its receives. `id` knows its device. Throws native::Failure.
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
  // A NIC sends at once what it is given, and credits bound that; completions come by the chunk.
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
  std::uint64_t received_bytes_ = 0; // not told to the worker yet, as are
  std::uint64_t answers_ = 0;        // these
  int error_ = 0;
};

} // namespace replay::rdma
