// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/ring.hpp"

#include "native/errors.hpp"

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

constexpr Nanos kPatienceNs = 20'000'000'000;
constexpr Nanos kRetryNs = 50'000'000;

// A peer whose host vanished without a word is given up after this; one that closes is noticed at once.
constexpr unsigned kSilenceMs = 10'000;

void set(int fd, int level, int option, int value) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0)
    throw native::system_failure("cannot set a socket option");
}

sockaddr_in socket_address(in_addr ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr = ip;
  return address;
}

Fd open_socket(in_addr own_ip, std::uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd)
    throw native::system_failure("cannot open a socket");
  if (port != 0)
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const sockaddr_in address = socket_address(own_ip, port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
    char text[INET_ADDRSTRLEN];
    throw native::system_failure("cannot bind to own address " +
                                 std::string(inet_ntop(AF_INET, &own_ip, text, sizeof text)) +
                                 (port != 0 ? " port " + std::to_string(port) : ""));
  }
  return fd;
}

void prepare(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

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

// A fresh connection's buffer always has room for one message; where it has not, the other end will time out.
void send_message(int fd, const std::string &text) {
  const Message message = to_message(text);
  if (send(fd, message.data(), message.size(), MSG_NOSIGNAL) < 0)
    std::cerr << "replay: cannot answer: " << std::strerror(errno) << '\n';
}

// One connection to the right neighbour: idle, connecting, or waiting for the answer to its hello.
class Outgoing {
public:
  Outgoing(const Options &options, unsigned flow) : options_(options), flow_(flow) {}

  bool welcome() const { return state_ == State::kWelcome; }
  const std::string &trouble() const { return trouble_; }
  Fd take() { return std::move(fd_); }

  pollfd interest() const {
    const short events = state_ == State::kConnecting ? POLLOUT : state_ == State::kAsking ? POLLIN : 0;
    return {state_ == State::kIdle ? -1 : fd_.get(), events, 0};
  }

  void retry(Nanos now) {
    if (state_ != State::kIdle || now < next_try_ns_)
      return;
    next_try_ns_ = now + kRetryNs;
    fd_ = open_socket(options_.self().ip, 0);
    prepare(fd_.get());
    const sockaddr_in address = socket_address(options_.right().ip, options_.port);
    if (connect(fd_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 && errno != EINPROGRESS)
      return give_up(std::strerror(errno));
    state_ = State::kConnecting;
  }

  void handle(short revents) {
    if (revents == 0)
      return;
    if (state_ == State::kConnecting)
      connected();
    else if (state_ == State::kAsking)
      answered();
    else if (state_ == State::kWelcome && (revents & (POLLERR | POLLHUP)) != 0)
      throw native::Failure("peer " + options_.right().text() + " closed the connection before the start");
  }

private:
  enum class State { kIdle, kConnecting, kAsking, kWelcome };

  void give_up(const std::string &trouble) {
    trouble_ = trouble;
    fd_ = Fd();
    state_ = State::kIdle;
  }

  void connected() {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0)
      return give_up(std::strerror(error));
    send_message(fd_.get(), Hello{options_.job, options_.rank, flow_, options_.fingerprint}.text());
    answer_ = {};
    state_ = State::kAsking;
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
    if (text != kWelcome)
      throw native::Failure("peer " + options_.right().text() + " refused us: " + text);
    state_ = State::kWelcome;
  }

  const Options &options_;
  unsigned flow_;
  State state_ = State::kIdle;
  Fd fd_;
  Nanos next_try_ns_ = 0;
  Incoming answer_;
  std::string trouble_ = "no answer";
};

// The listening side: connections that have not said their hello yet, and those of the left neighbour.
class Acceptor {
public:
  explicit Acceptor(const Options &options)
      : options_(options), listener_(open_socket(options.self().ip, options.port)), flows_(options.flows) {
    if (listen(listener_.get(), 128) != 0)
      throw native::system_failure("cannot listen");
  }

  bool complete() const {
    return std::all_of(flows_.begin(), flows_.end(), [](const Fd &fd) { return static_cast<bool>(fd); });
  }
  const std::string &trouble() const { return trouble_; }
  std::vector<Fd> take() { return std::move(flows_); }

  void add_interests(std::vector<pollfd> &fds) const {
    fds.push_back({listener_.get(), POLLIN, 0});
    for (const Guest &guest : guests_)
      fds.push_back({guest.fd.get(), POLLIN, 0});
  }

  void handle() {
    while (true) {
      Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd)
        break;
      guests_.push_back({std::move(fd), {}});
    }
    std::erase_if(guests_, [this](Guest &guest) { return !stays_guest(guest); });
  }

private:
  struct Guest {
    Fd fd;
    Incoming hello;
  };

  bool stays_guest(Guest &guest) {
    switch (guest.hello.read(guest.fd.get())) {
    case Incoming::State::kPartial:
      return true;
    case Incoming::State::kClosed:
      return false;
    case Incoming::State::kWhole:
      receive(std::move(guest.fd), to_text(guest.hello.message));
    }
    return false;
  }

  void receive(Fd fd, const std::string &hello) {
    const Hello expected{options_.job, options_.left_rank(), 0, options_.fingerprint};
    unsigned flow = 0;
    std::string trouble = judge_hello(hello, expected, options_.flows, flow);
    if (trouble.empty() && flows_[flow])
      trouble = "flow " + std::to_string(flow) + " is connected already";
    if (!trouble.empty()) {
      trouble_ = "refused a connection: " + trouble;
      std::cerr << "replay: " << trouble_ << '\n';
      send_message(fd.get(), trouble);
      return;
    }
    prepare(fd.get());
    send_message(fd.get(), std::string(kWelcome));
    flows_[flow] = std::move(fd);
  }

  const Options &options_;
  Fd listener_;
  std::vector<Guest> guests_;
  std::vector<Fd> flows_;
  std::string trouble_ = "it did not connect";
};

[[noreturn]] void fail_missing(const Options &options, const std::vector<Outgoing> &outgoing,
                               const Acceptor &acceptor) {
  for (const Outgoing &out : outgoing)
    if (!out.welcome())
      throw native::Failure("cannot reach peer " + options.right().text() + " on port " + std::to_string(options.port) +
                            " within 20 s: " + out.trouble());
  throw native::Failure("peer " + options.left().text() + " is missing after 20 s: " + acceptor.trouble());
}

} // namespace

Ring connect_ring(const Options &options, native::Control &control) {
  Acceptor acceptor(options);
  std::vector<Outgoing> outgoing;
  for (unsigned flow = 0; flow < options.flows; flow++)
    outgoing.emplace_back(options, flow);
  const auto all_welcome = [&] {
    return std::all_of(outgoing.begin(), outgoing.end(), [](const Outgoing &out) { return out.welcome(); });
  };

  const Nanos deadline = native::monotonic_ns() + kPatienceNs;
  while (!acceptor.complete() || !all_welcome()) {
    const Nanos now = native::monotonic_ns();
    if (now >= deadline)
      fail_missing(options, outgoing, acceptor);
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

  Ring ring;
  for (Outgoing &out : outgoing)
    ring.out.push_back(out.take());
  ring.in = acceptor.take();
  return ring;
}

} // namespace replay
