// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/connector.hpp"

#include "crossgen/common/sockets.hpp"

#include <cstring>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace crossgen {
namespace {

using native::Fd;
using native::Nanos;

constexpr Nanos kConnectTimeoutNs = 5'000'000'000;
constexpr Nanos kRetryNs = 50'000'000;

// Limit on simultaneous attempts to set up idle connections. For fresh connections, the limit on flows under way holds.
constexpr std::size_t kMaxAttempts = 32;

constexpr int kEcnBits = 3;

// Sets the class's DSCP and congestion control, and verifies them.
void configure(int fd, const ClassOptions &flow_class) {
  if (flow_class.dscp) {
    native::set_option(fd, IPPROTO_IP, IP_TOS, *flow_class.dscp << 2);
    int tos = 0;
    socklen_t length = sizeof tos;
    getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length);
    if ((tos & ~kEcnBits) != *flow_class.dscp << 2)
      throw native::Failure("class " + flow_class.name + ": expected DSCP " + std::to_string(*flow_class.dscp) +
                            " once it was set, found " + std::to_string(tos >> 2));
  }
  const std::string &wanted = flow_class.congestion_control;
  if (wanted.empty())
    return;
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted.data(), static_cast<socklen_t>(wanted.size())) != 0)
    throw native::system_failure("class " + flow_class.name + ": cannot use congestion control " + wanted);
  char found[16] = {}; // TCP_CA_NAME_MAX
  socklen_t length = sizeof found;
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, found, &length);
  if (wanted != found)
    throw native::Failure("class " + flow_class.name + ": expected congestion control " + wanted +
                          " once it was set, found " + found);
}

Fd open_socket(const Pool &pool, const std::optional<Endpoint> &source) {
  Fd fd = native::open_tcp_socket();
  configure(fd.get(), pool.flow_class());
  if (source)
    bind_source(fd.get(), *source);
  return fd;
}

} // namespace

Connector::Connector(std::vector<std::unique_ptr<Pool>> &pools, std::vector<std::unique_ptr<Worker>> &workers,
                     const std::string &secret, const SendOptions &options, Results &results)
    : pools_(pools), workers_(workers), hello_(make_hello(secret)), source_(options.source),
      most_attempts_(options.fresh ? options.most_connections : kMaxAttempts), results_(results) {}

void Connector::begin_wanted() {
  bury();
  for (const auto &pool : pools_)
    while (native::monotonic_ns() >= next_try_ns_ && attempts_.size() < most_attempts_ && pool->wants_more())
      begin(*pool);
}

void Connector::failed(const std::string &trouble) {
  trouble_ = trouble;
  next_try_ns_ = native::monotonic_ns() + kRetryNs;
}

void Connector::begin(Pool &pool) {
  Fd fd = open_socket(pool, source_);
  Attempt attempt{std::move(fd), &pool, native::monotonic_ns(), pool.take()};
  pool.connecting();
  try {
    begin_connect(attempt.fd.get(), pool.target().destination().endpoint);
  } catch (const native::Failure &error) {
    if (!retry(attempt, error.what()))
      return;
  }
  attempts_.push_back(std::move(attempt));
}

// Schedules the next attempt for a flow. Returns false if there is none: a flow is given up after a while, and other
// connections at once, because their pool then wants another one.
bool Connector::retry(Attempt &attempt, const std::string &why) {
  const Nanos now_ns = native::monotonic_ns();
  if (attempt.flow && !attempt.pool->target().lost() && now_ns <= attempt.began_ns + kConnectTimeoutNs) {
    attempt.fd = Fd();
    attempt.has_sent_hello = false;
    attempt.trouble = why;
    attempt.retry_ns = now_ns + kRetryNs;
    return true;
  }
  attempt.pool->gave_up_connecting();
  if (attempt.flow)
    unfinished(attempt, "cannot connect: " + why);
  else
    failed(why);
  return false;
}

Nanos Connector::deadline(Nanos latest_ns) const {
  for (const Attempt &attempt : attempts_)
    if (!attempt.fd)
      latest_ns = std::min(latest_ns, attempt.retry_ns);
  return latest_ns;
}

void Connector::add_interests(std::vector<pollfd> &fds) const {
  for (const Attempt &attempt : attempts_)
    fds.push_back({attempt.fd.get(), static_cast<short>(attempt.has_sent_hello ? POLLIN : POLLOUT), 0});
}

void Connector::handle(std::span<const pollfd> ready) {
  auto attempt = attempts_.begin();
  for (const pollfd &each : ready) {
    bool goes_on_now = false;
    try {
      goes_on_now = goes_on(*attempt, each.revents);
    } catch (const native::Failure &error) {
      goes_on_now = retry(*attempt, error.what());
    }
    attempt = goes_on_now ? std::next(attempt) : attempts_.erase(attempt);
  }
}

// Advances an attempt. Returns false once the connection is open. Throws native::Failure if the attempt failed.
bool Connector::goes_on(Attempt &attempt, short events) {
  if (native::monotonic_ns() > attempt.began_ns + kConnectTimeoutNs)
    throw native::Failure(attempt.trouble);
  if (!attempt.fd && native::monotonic_ns() >= attempt.retry_ns) {
    attempt.fd = open_socket(*attempt.pool, source_);
    begin_connect(attempt.fd.get(), attempt.pool->target().destination().endpoint);
  }
  if (events == 0)
    return true;
  if (attempt.has_sent_hello)
    return !answered(attempt);
  send_hello(attempt);
  if (attempt.flow)
    send_flow(attempt);
  return !attempt.flow;
}

void Connector::send_hello(Attempt &attempt) const {
  if (const int error = native::take_error(attempt.fd.get()))
    throw native::Failure(std::strerror(error));
  // A new connection's send buffer always has room for the hello.
  if (send(attempt.fd.get(), hello_.data(), hello_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello_.size()))
    throw native::Failure(std::string("cannot send the secret: ") + std::strerror(errno));
  attempt.has_sent_hello = true;
}

bool Connector::answered(Attempt &attempt) {
  const std::span<char> room = attempt.acceptance.room();
  const ssize_t n = recv(attempt.fd.get(), room.data(), room.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n == 0 || (n < 0 && errno == ECONNRESET))
    throw native::Failure(std::string("the sink ") + kRefused);
  if (n < 0)
    throw native::Failure(std::strerror(errno));
  attempt.acceptance.took(static_cast<std::size_t>(n));
  if (!attempt.acceptance.whole())
    return false;
  if (attempt.acceptance.message() != kAcceptance)
    throw native::Failure("it is no crossgen sink");
  attempt.pool->connected(open(attempt));
  return true;
}

Connection &Connector::open(Attempt &attempt) {
  const Worker &worker = *workers_[next_worker_++ % workers_.size()];
  connections_.emplace_back(std::move(attempt.fd), *attempt.pool, worker.poller(), results_, attempt.flow.has_value());
  opened_++;
  return connections_.back();
}

// Sends a flow without waiting for the sink's answer. Its time includes TCP's handshake, and no other round trip.
void Connector::send_flow(Attempt &attempt) {
  Connection &connection = open(attempt);
  attempt.pool->opened();
  if (!attempt.started)
    results_.started(*attempt.flow, attempt.began_ns);
  connection.begin(*attempt.flow, attempt.began_ns);
}

void Connector::unfinished(const Attempt &attempt, const std::string &why) const {
  results_.unfinished({*attempt.flow, attempt.started ? attempt.began_ns : 0, 0, why});
}

void Connector::retry_unanswered(const Connection &connection) {
  Attempt attempt{Fd(), &connection.pool(), connection.start_ns(), *connection.unanswered(), true};
  attempt.pool->reconnecting();
  if (retry(attempt, "the sink " + connection.why()))
    attempts_.push_back(std::move(attempt));
}

// Removes fresh connections that have ended.
void Connector::bury() {
  for (auto each = connections_.begin(); each != connections_.end();) {
    if (!each->ended()) {
      each++;
      continue;
    }
    buried_bytes_ += each->acknowledged_bytes();
    if (each->unanswered())
      retry_unanswered(*each);
    each = connections_.erase(each);
  }
}

std::uint64_t Connector::acknowledged_bytes() const {
  std::uint64_t bytes = buried_bytes_;
  for (const Connection &connection : connections_)
    bytes += connection.acknowledged_bytes();
  return bytes;
}

void Connector::give_up_flows() {
  for (const Attempt &attempt : attempts_)
    if (attempt.flow)
      unfinished(attempt, "was connecting");
  for (Connection &connection : connections_)
    connection.give_up();
}

} // namespace crossgen
