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

constexpr Nanos kPatienceNs = 5'000'000'000;
constexpr Nanos kRetryNs = 50'000'000;

// More at once would overflow the sink's listening queue.
constexpr std::size_t kMostAttempts = 32;

constexpr int kEcnBits = 3;

// Sets what the class asks for, and reads it back.
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

} // namespace

Connector::Connector(std::vector<std::unique_ptr<Pool>> &pools, std::vector<std::unique_ptr<Worker>> &workers,
                     const std::string &secret, const SendOptions &options, Results &results)
    : pools_(pools), workers_(workers), hello_(make_hello(secret)),
      most_attempts_(options.fresh ? options.most_connections : kMostAttempts), results_(results) {}

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
  Fd fd = native::open_tcp_socket();
  configure(fd.get(), pool.flow_class());
  Attempt attempt{std::move(fd), &pool, native::monotonic_ns(), pool.take()};
  pool.connecting();
  try {
    begin_connect(attempt.fd.get(), pool.target().destination().endpoint);
  } catch (const native::Failure &error) {
    return give_up(attempt, error.what());
  }
  attempts_.push_back(std::move(attempt));
}

void Connector::add_interests(std::vector<pollfd> &fds) const {
  for (const Attempt &attempt : attempts_)
    fds.push_back({attempt.fd.get(), static_cast<short>(attempt.asked ? POLLIN : POLLOUT), 0});
}

void Connector::handle(std::span<const pollfd> ready) {
  auto attempt = attempts_.begin();
  for (const pollfd &each : ready) {
    bool goes_on_now = false;
    try {
      goes_on_now = goes_on(*attempt, each.revents);
    } catch (const native::Failure &error) {
      give_up(*attempt, error.what());
    }
    attempt = goes_on_now ? std::next(attempt) : attempts_.erase(attempt);
  }
}

// False once it has led to a connection. Throws native::Failure when it will not.
bool Connector::goes_on(Attempt &attempt, short events) {
  if (native::monotonic_ns() > attempt.began_ns + kPatienceNs)
    throw native::Failure("no answer");
  if (events == 0)
    return true;
  if (attempt.asked)
    return !answered(attempt);
  ask(attempt);
  if (attempt.flow)
    send_flow(attempt);
  return !attempt.flow;
}

void Connector::ask(Attempt &attempt) const {
  if (const int error = native::take_error(attempt.fd.get()))
    throw native::Failure(std::strerror(error));
  // A fresh connection's buffer has room for it.
  if (send(attempt.fd.get(), hello_.data(), hello_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello_.size()))
    throw native::Failure(std::string("cannot send the secret: ") + std::strerror(errno));
  attempt.asked = true;
}

bool Connector::answered(Attempt &attempt) {
  const std::span<char> room = attempt.welcome.room();
  const ssize_t n = recv(attempt.fd.get(), room.data(), room.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0)
    throw native::Failure("it refused us: is its secret another one, or its --most-connections reached?");
  attempt.welcome.took(static_cast<std::size_t>(n));
  if (!attempt.welcome.whole())
    return false;
  if (attempt.welcome.message() != kWelcome)
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

// Without waiting for the welcome: the flow's time begins with its connection's, and takes no round trip more than
// TCP's.
void Connector::send_flow(Attempt &attempt) {
  Connection &connection = open(attempt);
  attempt.pool->opened();
  connection.begin(*attempt.flow, attempt.began_ns);
}

// A flow's own connection is not tried again; others are, in a moment.
void Connector::give_up(const Attempt &attempt, const std::string &why) {
  attempt.pool->gave_up_connecting();
  if (attempt.flow)
    results_.unfinished({*attempt.flow, 0, 0, "cannot connect: " + why});
  else
    failed(why);
}

// Removes connections whose only flow is done.
void Connector::bury() {
  for (auto each = connections_.begin(); each != connections_.end();) {
    if (!each->ended()) {
      each++;
      continue;
    }
    buried_bytes_ += each->acknowledged_bytes();
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
      results_.unfinished({*attempt.flow, 0, 0, "was connecting"});
  for (Connection &connection : connections_)
    connection.give_up();
}

} // namespace crossgen
