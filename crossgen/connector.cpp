// SPDX-License-Identifier: Apache-2.0
#include "crossgen/connector.hpp"

#include "crossgen/sockets.hpp"

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
    set_option(fd, IPPROTO_IP, IP_TOS, *flow_class.dscp << 2);
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
                     const std::string &secret, Results &results)
    : pools_(pools), workers_(workers), hello_(make_hello(secret)), results_(results) {}

void Connector::begin_wanted() {
  for (const auto &pool : pools_)
    while (native::monotonic_ns() >= next_try_ns_ && attempts_.size() < kMostAttempts && pool->wants_more())
      begin(*pool);
}

void Connector::failed(const std::string &trouble) {
  trouble_ = trouble;
  next_try_ns_ = native::monotonic_ns() + kRetryNs;
}

void Connector::begin(Pool &pool) {
  Fd fd = open_socket();
  configure(fd.get(), pool.flow_class());
  try {
    begin_connect(fd.get(), pool.target().destination().endpoint);
  } catch (const native::Failure &error) {
    return failed(error.what());
  }
  attempts_.push_back({std::move(fd), &pool, native::monotonic_ns() + kPatienceNs});
  pool.connecting();
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
      failed(error.what());
      attempt->pool->gave_up_connecting();
    }
    attempt = goes_on_now ? std::next(attempt) : attempts_.erase(attempt);
  }
}

// False once it has led to a connection. Throws native::Failure when it will not.
bool Connector::goes_on(Attempt &attempt, short events) {
  if (native::monotonic_ns() > attempt.deadline_ns)
    throw native::Failure("no answer");
  if (events == 0)
    return true;
  if (attempt.asked)
    return !answered(attempt);
  ask(attempt);
  return true;
}

void Connector::ask(Attempt &attempt) const {
  if (const int error = take_error(attempt.fd.get()))
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
  const Worker &worker = *workers_[next_worker_++ % workers_.size()];
  connections_.emplace_back(std::move(attempt.fd), *attempt.pool, worker.poller(), results_);
  attempt.pool->connected(connections_.back());
  return true;
}

void Connector::give_up_flows() {
  for (Connection &connection : connections_)
    connection.give_up();
}

} // namespace crossgen
