// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/network/peer_connections.hpp"

#include "native/control/handshake_listener.hpp"
#include "native/errors.hpp"
#include "native/sockets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <fcntl.h>
#include <iostream>
#include <linux/tcp.h>
#include <sys/socket.h>

namespace replay {
namespace {

using native::Fd;
using native::Nanos;

constexpr Nanos kConnectTimeoutNs = 20'000'000'000;
constexpr Nanos kRetryNs = 50'000'000;

// A connection ends if its peer is unreachable for this long. A peer that closes is noticed at once.
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kProbeS = 1;

constexpr std::size_t kMaxGuests = 16;

// The rank of a peer, and the number of a connection among those to or from it.
using End = std::pair<unsigned, unsigned>;

Fd open_socket(const Options &options, in_addr own_ip, std::uint16_t port) {
  Fd fd = native::open_tcp_socket();
  native::set_option(fd.get(), IPPROTO_IP, IP_TOS,
                     static_cast<int>(options.job.dscp << 2)); // what a listener takes has its own
  if (port != 0)
    native::set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const sockaddr_in address = native::socket_address(own_ip, port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
    char text[INET_ADDRSTRLEN];
    throw native::system_failure("cannot bind to own address " +
                                 std::string(inet_ntop(AF_INET, &own_ip, text, sizeof text)) +
                                 (port != 0 ? " port " + std::to_string(port) : ""));
  }
  return fd;
}

void prepare(int fd) { native::tune_connection(fd, kKeepaliveTimeoutMs, kProbeS); }

// A message on its way in.
struct Incoming {
  Message message{};
  std::size_t received = 0;

  enum class State { kPartial, kWhole, kClosed };

  State read(int fd) {
    const ssize_t n = recv(fd, message.data() + received, message.size() - received, 0);
    if (n < 0)
      return errno == EAGAIN || errno == EINTR ? State::kPartial : State::kClosed;
    received += static_cast<std::size_t>(n);
    if (n == 0)
      return State::kClosed;
    return received == message.size() ? State::kWhole : State::kPartial;
  }
};

// Errors are ignored: a new connection's buffer has room for one message, and otherwise the other end times out.
void send_message(int fd, const std::string &text) {
  const Message message = to_message(text);
  if (send(fd, message.data(), message.size(), MSG_NOSIGNAL) < 0)
    std::cerr << "replay: cannot answer: " << std::strerror(errno) << '\n';
}

// One connection to a worker that we send to: idle, connecting, or waiting for the answer to its hello.
class Outgoing {
public:
  Outgoing(const Options &options, const std::string &secret, unsigned rank, unsigned number)
      : options_(options), secret_(secret), rank_(rank), number_(number), peer_(options.job.workers[rank]) {}

  bool accepted() const { return state_ == State::kAccepted; }
  const Peer &peer() const { return peer_; }
  const std::string &trouble() const { return trouble_; }
  Socket take() { return {rank_, number_, std::move(fd_)}; }

  pollfd interest() const {
    const short events = state_ == State::kConnecting ? POLLOUT : state_ == State::kRequesting ? POLLIN : 0;
    return {state_ == State::kIdle ? -1 : fd_.get(), events, 0};
  }

  void retry(Nanos now) {
    if (state_ != State::kIdle || now < next_try_ns_)
      return;
    next_try_ns_ = now + kRetryNs;
    const std::uint16_t first = options_.self().source_port;
    const unsigned to = peer_.nic + number_, from = options_.job.pxn ? to : options_.self().nic + number_;
    fd_ = open_socket(options_, options_.self().nic_address(from),
                      first == 0 ? 0 : static_cast<std::uint16_t>(first + number_));
    prepare(fd_.get());
    const sockaddr_in address = native::socket_address(peer_.nic_address(to), peer_.port);
    if (connect(fd_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 && errno != EINPROGRESS)
      return give_up(std::strerror(errno));
    state_ = State::kConnecting;
  }

  void handle(short revents) {
    if (revents == 0)
      return;
    if (state_ == State::kConnecting)
      connected();
    else if (state_ == State::kRequesting)
      answered();
    else if (state_ == State::kAccepted && (revents & (POLLERR | POLLHUP)) != 0)
      throw native::Failure("peer " + peer_.text() + " closed the connection before the start");
  }

private:
  enum class State { kIdle, kConnecting, kRequesting, kAccepted };

  void give_up(const std::string &trouble) {
    trouble_ = trouble;
    fd_ = Fd();
    state_ = State::kIdle;
  }

  void connected() {
    if (const int error = native::take_error(fd_.get()))
      return give_up(std::strerror(error));
    send_message(fd_.get(), Hello{options_.job.name, options_.rank, number_, options_.job.fingerprint, secret_}.text());
    answer_ = {};
    state_ = State::kRequesting;
  }

  void answered() {
    switch (answer_.read(fd_.get())) {
    case Incoming::State::kPartial:
      return;
    case Incoming::State::kClosed:
      return give_up("it closed the connection");
    case Incoming::State::kWhole:
      break;
    }
    const std::string text = to_text(answer_.message);
    if (text != kAcceptance)
      throw native::Failure("peer " + peer_.text() + " refused us: " + text);
    state_ = State::kAccepted;
  }

  const Options &options_;
  const std::string &secret_;
  unsigned rank_;
  unsigned number_;
  const Peer &peer_;
  State state_ = State::kIdle;
  Fd fd_;
  Nanos next_try_ns_ = 0;
  Incoming answer_;
  std::string trouble_ = "no answer";
};

// The listening side: the door, and the connections of workers that we receive from.
class Acceptor {
public:
  Acceptor(const Options &options, const std::string &secret, native::Fd listener, const std::vector<End> &ends)
      : options_(options), expected_{options.job.name, {}, options.job.fingerprint, secret},
        door_(std::move(listener), sizeof(Message), kMaxGuests) {
    for (const auto &[sender, number] : ends) {
      expected_.connections[sender].insert(number);
      sockets_.push_back({sender, number, {}});
    }
  }

  bool complete() const {
    return std::all_of(sockets_.begin(), sockets_.end(), [](const Socket &each) { return !!each.fd; });
  }
  const Peer &missing() const {
    const auto first = std::find_if(sockets_.begin(), sockets_.end(), [](const auto &each) { return !each.fd; });
    return options_.job.workers[first->peer];
  }
  const std::string &trouble() const { return trouble_; }
  std::vector<Socket> take() { return std::move(sockets_); }

  void add_interests(std::vector<pollfd> &fds) const { door_.add_interests(fds); }

  void handle() {
    door_.look([this](Fd fd, const std::string &message) { receive(std::move(fd), message.c_str()); });
  }

private:
  void receive(Fd fd, const std::string &text) {
    if (!has_secret(text, expected_)) {
      trouble_ = "refused a connection without the trial's secret";
      return;
    }
    Hello hello;
    std::string trouble = judge_hello(text, expected_, hello);
    Socket *place = trouble.empty() ? &find(hello) : nullptr;
    if (place && place->fd)
      trouble = "connection " + std::to_string(hello.connection) + " is there already";
    if (!trouble.empty()) {
      trouble_ = "refused a connection: " + trouble;
      std::cerr << "replay: " << trouble_ << '\n';
      send_message(fd.get(), trouble);
      return;
    }
    prepare(fd.get());
    send_message(fd.get(), std::string(kAcceptance));
    place->fd = std::move(fd);
  }

  Socket &find(const Hello &hello) {
    return *std::find_if(sockets_.begin(), sockets_.end(), [&](const Socket &each) {
      return each.peer == hello.rank && each.number == hello.connection;
    });
  }

  const Options &options_;
  Expected expected_;
  native::Door door_;
  std::vector<Socket> sockets_;
  std::string trouble_ = "it did not connect";
};

[[noreturn]] void fail_missing(const std::vector<Outgoing> &outgoing, const Acceptor &acceptor) {
  for (const Outgoing &out : outgoing)
    if (!out.accepted())
      throw native::Failure("cannot reach peer " + out.peer().text() + " on port " + std::to_string(out.peer().port) +
                            " within 20 s: " + out.trouble());
  throw native::Failure("peer " + acceptor.missing().text() + " is missing after 20 s: " + acceptor.trouble());
}

// Returns the other ends of a worker's connections, each once, in the order of phases and transfers.
std::vector<End> other_ends(const Options &options, unsigned Transfer::*own, unsigned Transfer::*other) {
  std::vector<End> found;
  for (const Phase &phase : options.job.phases)
    for (const Transfer &transfer : phase.transfers)
      for (unsigned each = 0; transfer.*own == options.rank && each < options.job.connections; each++) {
        const End end{transfer.*other, transfer.number(each, options.job.connections)};
        if (std::find(found.begin(), found.end(), end) == found.end())
          found.push_back(end);
      }
  return found;
}

} // namespace

Fd listen_for_peers(const Options &options) {
  const in_addr any{INADDR_ANY};
  Fd fd = open_socket(options, options.self().nics.empty() ? options.self().ip : any, options.self().port);
  if (listen(fd.get(), 128) != 0)
    throw native::system_failure("cannot listen");
  return fd;
}

Mesh connect_mesh(const Options &options, Fd listener, const std::string &secret, native::Control &control) {
  Acceptor acceptor(options, secret, std::move(listener), other_ends(options, &Transfer::to, &Transfer::from));
  std::vector<Outgoing> outgoing;
  for (const auto &[receiver, number] : other_ends(options, &Transfer::from, &Transfer::to))
    outgoing.emplace_back(options, secret, receiver, number);
  const auto all_accepted = [&] {
    return std::all_of(outgoing.begin(), outgoing.end(), [](const Outgoing &out) { return out.accepted(); });
  };

  const Nanos deadline = native::monotonic_ns() + kConnectTimeoutNs;
  while (!acceptor.complete() || !all_accepted()) {
    const Nanos now = native::monotonic_ns();
    if (now >= deadline)
      fail_missing(outgoing, acceptor);
    std::vector<pollfd> fds;
    for (Outgoing &out : outgoing) {
      out.retry(now);
      fds.push_back(out.interest());
    }
    acceptor.add_interests(fds);
    control.wait(fds, std::min(deadline, now + kRetryNs));
    for (std::size_t i = 0; i < outgoing.size(); i++)
      outgoing[i].handle(fds[i].revents);
    acceptor.handle();
  }

  Mesh mesh;
  for (Outgoing &out : outgoing)
    mesh.out.push_back(out.take());
  mesh.in = acceptor.take();
  return mesh;
}

} // namespace replay
