// SPDX-License-Identifier: Apache-2.0
#include "crossgen/connection.hpp"

#include "crossgen/little_endian.hpp"
#include "crossgen/sockets.hpp"

#include <algorithm>
#include <cstring>
#include <linux/tcp.h>
#include <mutex>
#include <sys/socket.h>
#include <sys/uio.h>

namespace crossgen {
namespace {

// The launcher's share of a flow: it must be back for the next one.
constexpr std::size_t kFirstBytes = 64 * 1024;

constexpr std::size_t kSendBytes = 256 * 1024;

// What the kernel may hold unsent of a connection.
constexpr int kUnsentBytes = 512 * 1024;

// Nobody looks at the payload.
const char kZeros[kSendBytes] = {};

} // namespace

Connection::Connection(native::Fd fd, Pool &pool, const Poller &poller, Results &results)
    : fd_(std::move(fd)), pool_(pool), poller_(poller), results_(results) {
  set_option(fd_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  poller_.add(fd_.get(), EPOLLIN, this);
}

void Connection::begin(const Launch &launch) {
  const std::lock_guard guard(mutex_);
  launch_ = launch;
  header_ = make_flow_header(launch.number, launch.flow.bytes);
  sent_ = 0;
  start_ns_ = native::monotonic_ns();
  results_.started(launch, start_ns_);
  if (broken_)
    return;
  send_some(kFirstBytes);
  if (unsent() > 0)
    poller_.change(fd_.get(), EPOLLIN | EPOLLOUT, this);
}

void Connection::handle(std::uint32_t events) {
  std::optional<Finished> finished;
  try {
    const std::lock_guard guard(mutex_);
    if ((events & EPOLLOUT) != 0 && launch_) {
      send_some(kSendBytes);
      if (unsent() == 0)
        poller_.change(fd_.get(), EPOLLIN, this);
    }
    if ((events & ~EPOLLOUT) != 0)
      finished = read_acknowledgement();
  } catch (const native::Failure &error) {
    return lose(error.what());
  }
  if (finished) {
    results_.finished(*finished);
    pool_.release(*this);
  }
}

// A broken connection is noticed when the acknowledgement is read.
void Connection::send_some(std::size_t most) {
  iovec parts[2];
  std::size_t count = 0;
  if (sent_ < header_.size())
    parts[count++] = {header_.data() + sent_, header_.size() - sent_};
  const std::uint64_t body = std::min(unsent(), launch_->flow.bytes);
  parts[count++] = {const_cast<char *>(kZeros), std::min<std::uint64_t>(body, most)};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  const ssize_t n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  sent_ += static_cast<std::uint64_t>(std::max<ssize_t>(n, 0));
}

std::optional<Finished> Connection::read_acknowledgement() {
  const std::span<char> room = acknowledgement_.room();
  const ssize_t n = recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return std::nullopt;
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    throw native::Failure("closed the connection");
  if (n < 0)
    throw native::Failure(std::string("was lost (") + std::strerror(errno) + ")");
  acknowledgement_.took(static_cast<std::size_t>(n));
  if (!acknowledgement_.whole())
    return std::nullopt;
  if (!launch_ || unsent() > 0 || get<std::uint64_t>(acknowledgement_.message().data()) != launch_->number)
    throw native::Failure("acknowledged a flow that it was not sent");
  acknowledgement_.restart();
  const Finished finished{*launch_, start_ns_, native::monotonic_ns()};
  launch_.reset();
  return finished;
}

void Connection::lose(const std::string &why) {
  {
    const std::lock_guard guard(mutex_);
    broken_ = true;
    poller_.remove(fd_.get());
  }
  pool_.lose(why);
}

std::uint64_t Connection::acknowledged_bytes() const {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
    throw native::system_failure("cannot read a socket's TCP_INFO");
  return info.tcpi_bytes_acked;
}

void Connection::give_up() {
  if (!launch_)
    return;
  const std::uint64_t sent_bytes = sent_ - std::min<std::uint64_t>(sent_, sizeof(FlowHeader));
  results_.unfinished({*launch_, start_ns_, sent_bytes, pool_.target().lost() ? pool_.target().why() : "under way"});
}

} // namespace crossgen
