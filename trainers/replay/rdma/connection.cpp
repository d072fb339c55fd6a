// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/rdma/connection.hpp"

#include "native/errors.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace replay::rdma {
namespace {

// The buffer that all connections write from and into. Its content is never read.
alignas(4096) char payload[Connection::kMaxBytes];

// Send requests of either end: chunks, or messages, of which there is less than one for each chunk.
constexpr std::uint32_t kRequests = 2 * kChunks;

template <typename T> T made(T what, const char *name) {
  if (!what)
    throw native::system_failure(std::string("cannot make ") + name + " for RDMA");
  return what;
}

int error_of(ibv_wc_status status) {
  switch (status) {
  case IBV_WC_RETRY_EXC_ERR:
  case IBV_WC_RNR_RETRY_EXC_ERR:
    return ETIMEDOUT;
  case IBV_WC_WR_FLUSH_ERR: // the peer is gone
    return ECONNRESET;
  default:
    return EIO;
  }
}

} // namespace

RdmaConnection::RdmaConnection(Socket socket, Id id)
    : Connection(socket.peer, socket.number), socket_(std::move(socket.fd)), id_(std::move(id)) {
  make_queues();
  watched_ = native::Fd(epoll_create1(EPOLL_CLOEXEC));
  watch(channel_->fd);
  watch(socket_.get());
  for (std::uint32_t i = 0; i < kChunks; i++)
    if (!post_receive())
      throw native::system_failure("cannot post a receive for RDMA");
}

void RdmaConnection::make_queues() {
  ibv_context *device = id_->verbs;
  channel_ = made(CompletionChannel(ibv_create_comp_channel(device)), "a completion channel");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  const int depth = static_cast<int>(kRequests + kChunks);
  completions_ = made(CompletionQueue(ibv_create_cq(device, depth, nullptr, channel_.get(), 0)), "a completion queue");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.cap = {
      .max_send_wr = kRequests, .max_recv_wr = kChunks, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  if (rdma_create_qp(id_.get(), nullptr, &wanted) != 0)
    throw native::system_failure("cannot make a queue pair for RDMA");
  queue_pair_.reset(id_.get());
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  memory_ = made(Memory(ibv_reg_mr(id_->pd, payload, sizeof payload, access)), "memory");
  if (ibv_req_notify_cq(completions_.get(), 0) != 0)
    throw native::system_failure("cannot request notifications of RDMA completions");
}

void RdmaConnection::watch(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(watched_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    throw native::system_failure("cannot watch a descriptor");
}

Target RdmaConnection::target() const { return {reinterpret_cast<std::uint64_t>(payload), memory_->rkey}; }

pollfd RdmaConnection::interest(bool) const { return {watched_.get(), POLLIN, 0}; }

bool RdmaConnection::has_room(short) const { return credits_.any() && under_way_ < kRequests; }

bool RdmaConnection::post_receive() {
  ibv_recv_wr request{},
      *bad = nullptr; // without a buffer: chunks are written to `payload`, and messages are in the immediates
  return ibv_post_recv(id_->qp, &request, &bad) == 0;
}

bool RdmaConnection::post(ibv_send_wr request, std::size_t bytes) {
  ibv_sge from{.addr = target().address, .length = static_cast<std::uint32_t>(bytes), .lkey = memory_->lkey};
  ibv_send_wr *bad = nullptr;
  request.wr_id = bytes;
  request.sg_list = &from;
  request.num_sge = bytes > 0;
  errno = ibv_post_send(id_->qp, &request, &bad);
  under_way_ += errno == 0;
  return errno == 0;
}

ssize_t RdmaConnection::send(std::size_t bytes) {
  if (!has_room(0)) {
    errno = EAGAIN;
    return -1;
  }
  ibv_send_wr chunk{};
  chunk.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  chunk.wr.rdma.remote_addr = target_.address;
  chunk.wr.rdma.rkey = target_.key;
  if (!post(chunk, bytes))
    return -1;
  credits_.spend();
  return static_cast<ssize_t>(bytes);
}

ssize_t RdmaConnection::say(Word word) {
  ibv_send_wr message{};
  message.opcode = IBV_WR_SEND_WITH_IMM;
  message.imm_data = htonl(word.packed());
  return post(message, 0) ? 1 : -1;
}

ssize_t RdmaConnection::answer() { return say({untold_.take(), true}); }

ssize_t RdmaConnection::receive() {
  const ssize_t n = take(received_bytes_);
  if (untold_.worth_saying() && say({untold_.take(), false}) < 0)
    fail(errno);
  return n;
}

ssize_t RdmaConnection::take_answers() { return take(answers_); }

ssize_t RdmaConnection::take(std::uint64_t &count) {
  const std::optional<int> end = socket_end(); // read first, so that data sent before the end are not lost
  look();
  if (count > 0)
    return static_cast<ssize_t>(std::exchange(count, 0));
  if (error_ == 0 && end == 0)
    return 0;
  errno = error_ != 0 ? error_ : end.value_or(EAGAIN);
  return -1;
}

// Records the first error. After the shutdown, poll() reports end of file until it is read.
void RdmaConnection::fail(int error) {
  if (error_ == 0)
    error_ = error;
  shutdown(socket_.get(), SHUT_RD);
}

// Handles all completions. Notifications are enabled first, so that a later completion wakes the worker.
void RdmaConnection::look() {
  ibv_cq *queue = nullptr;
  void *context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    if (ibv_req_notify_cq(queue, 0) != 0)
      fail(EIO);
  }
  std::array<ibv_wc, 16> some;
  int count = 0;
  while ((count = ibv_poll_cq(completions_.get(), some.size(), some.data())) > 0)
    for (int i = 0; i < count; i++)
      complete(some[static_cast<std::size_t>(i)]);
  if (count < 0)
    fail(EIO);
}

void RdmaConnection::complete(const ibv_wc &completion) {
  if (completion.status != IBV_WC_SUCCESS)
    return fail(error_of(completion.status));
  if ((completion.opcode & IBV_WC_RECV) == 0) {
    under_way_--;
    acked_bytes_ += completion.wr_id;
    return;
  }
  if (!post_receive())
    fail(EIO);
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    received_bytes_ += completion.byte_len;
    untold_.add();
    return;
  }
  const Word word = Word::unpacked(ntohl(completion.imm_data));
  answers_ += word.answer;
  if (!credits_.gain(word.posted))
    fail(EPROTO);
}

std::optional<int> RdmaConnection::socket_end() const {
  char byte;
  if (recv(socket_.get(), &byte, 1, MSG_DONTWAIT) >= 0)
    return 0;
  return errno == EAGAIN || errno == EINTR ? std::nullopt : std::optional(errno);
}

void RdmaConnection::shut() { shutdown(socket_.get(), SHUT_WR); }

Flow RdmaConnection::flow() const {
  Flow flow;
  flow.local_port = ntohs(rdma_get_src_port(id_.get()));
  flow.remote_port = ntohs(rdma_get_dst_port(id_.get()));
  flow.bytes_acked = acked_bytes_;
  return flow;
}

} // namespace replay::rdma
