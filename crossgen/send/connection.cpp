// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/connection.hpp"

#include "crossgen/common/little_endian.hpp"
#include "crossgen/common/sockets.hpp"

#include <algorithm>
#include <cstring>
#include <linux/tcp.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace crossgen {
namespace {

// The launcher sends at most this much of a flow, so that it is in time for the next one.
constexpr std::size_t kFirstBytes = 64 * 1024;

constexpr std::size_t kSendBytes = 256 * 1024;

// Limit on the unsent bytes of a connection in the kernel (TCP_NOTSENT_LOWAT).
constexpr int kUnsentBytes = 512 * 1024;

// The sink discards the payload, so it may be zeros.
const char kZeros[kFirstBytes] = {};

// Returns a file in memory with the payload. sendfile passes its pages on without a copy, which gives 1.5 times the
// throughput on veth.
int payload_file() {
  static const native::Fd file = [] {
    native::Fd made(memfd_create("payload", MFD_CLOEXEC));
    const std::vector<char> zeros(kSendBytes);
    if (!made || write(made.get(), zeros.data(), zeros.size()) != static_cast<ssize_t>(zeros.size()))
      throw native::system_failure("cannot make a file in memory");
    return made;
  }();
  return file.get();
}

} // namespace

Connection::Connection(native::Fd fd, Pool &pool, const Poller &poller, Results &results, bool fresh)
    : fd_(std::move(fd)), pool_(pool), poller_(poller), results_(results), fresh_(fresh), answered_(!fresh) {
  payload_file(); // made before anything is timed
  native::set_option(fd_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  poller_.add(fd_.get(), EPOLLIN, this);
}

void Connection::begin(const Launch &launch, native::Nanos start_ns) {
  const std::lock_guard guard(mutex_);
  launch_ = launch;
  start_ns_ = start_ns;
  header_ = make_flow_header(launch.number, launch.flow.bytes);
  sent_ = 0;
  if (broken_)
    return;
  send_first();
  if (unsent() > 0)
    poller_.change(fd_.get(), EPOLLIN | EPOLLOUT, this);
}

void Connection::handle(std::uint32_t events) {
  std::optional<Finished> finished;
  try {
    const std::lock_guard guard(mutex_);
    if ((events & EPOLLOUT) != 0 && launch_) {
      send_more();
      if (unsent() == 0)
        poller_.change(fd_.get(), EPOLLIN, this);
    }
    if ((events & ~EPOLLOUT) != 0)
      finished = read_acknowledgement();
  } catch (const native::Failure &error) {
    return lose(error.what());
  }
  if (!finished)
    return;
  results_.finished(*finished);
  if (fresh_)
    end();
  else
    pool_.release(*this);
}

// Closes with a reset, because all bytes have arrived, and ports in TIME_WAIT would run out.
void Connection::end() {
  poller_.remove(fd_.get());
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  pool_.ended();
  ended_ = true; // last: from now on its owner may destroy it
}

// Sends the rest of the header, and the first bytes. Errors are ignored here: reading the acknowledgement reports them.
void Connection::send_first() {
  iovec parts[] = {{header_.data() + sent_, header_.size() - sent_},
                   {const_cast<char *>(kZeros), std::min<std::uint64_t>(launch_->flow.bytes, kFirstBytes)}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  count_sent(sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Connection::send_more() {
  if (sent_ < header_.size())
    return send_first();
  off_t from = 0;
  count_sent(sendfile(fd_.get(), payload_file(), &from, std::min<std::uint64_t>(unsent(), kSendBytes)));
}

void Connection::count_sent(ssize_t bytes) { sent_ += static_cast<std::uint64_t>(std::max<ssize_t>(bytes, 0)); }

// Reads a part of the message. Returns true if the message is complete.
template <typename Message> bool Connection::read(Incoming<Message> &message) const {
  const std::span<char> room = message.room();
  const ssize_t n = recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    throw native::Failure(answered_ ? "closed the connection" : kRefused);
  if (n < 0)
    throw native::Failure(std::string("was lost (") + std::strerror(errno) + ")");
  message.took(static_cast<std::size_t>(n));
  return message.whole();
}

std::optional<Finished> Connection::read_acknowledgement() {
  if (!answered_) {
    if (!read(acceptance_))
      return std::nullopt;
    answered_ = true;
    if (acceptance_.message() != kAcceptance)
      throw native::Failure("is no crossgen sink");
  }
  if (!read(acknowledgement_))
    return std::nullopt;
  if (!launch_ || unsent() > 0 || get<std::uint64_t>(acknowledgement_.message().data()) != launch_->number)
    throw native::Failure("acknowledged a flow that it was not sent");
  acknowledgement_.restart();
  const Finished finished{*launch_, start_ns_, native::monotonic_ns()};
  launch_.reset();
  return finished;
}

// A sink that has not answered is not lost: it may have too many new connections at the moment.
void Connection::lose(const std::string &why) {
  {
    const std::lock_guard guard(mutex_);
    broken_ = true;
    why_ = why;
    poller_.remove(fd_.get());
  }
  if (answered_)
    return pool_.lose(why);
  const Pool &pool = pool_;
  ended_ = true; // as in end()
  pool.wake();
}

std::uint64_t Connection::acknowledged_bytes() const {
  if (!answered_)
    return 0;
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
