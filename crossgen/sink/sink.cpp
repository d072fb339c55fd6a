// SPDX-License-Identifier: Apache-2.0
#include "crossgen/sink/sink.hpp"

#include "crossgen/common/sockets.hpp"
#include "crossgen/common/wire.hpp"
#include "crossgen/send/poller.hpp"
#include "native/control/control.hpp"
#include "native/control/handshake_listener.hpp"
#include "native/control/secret.hpp"
#include "native/drop_privileges.hpp"
#include "native/line_writer.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <thread>

namespace crossgen {
namespace {

using native::Fd;
using native::Nanos;

constexpr std::size_t kMaxGuests = 64;
constexpr Nanos kStallTimeoutNs = 60'000'000'000;
constexpr Nanos kSweepNs = 1'000'000'000;

// Largest number of successive reads of one connection, so that the others are served too.
constexpr int kReadsInARow = 16;

struct Counters {
  std::atomic<std::uint64_t> flows = 0;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<std::uint64_t> connections = 0; // open now
  std::atomic<std::uint64_t> dropped = 0;     // connections that stalled or broke the protocol
};

// A sender's connection.
struct Connection {
  Fd fd;
  FlowReceiver receiver;
  Nanos last_byte_ns = native::monotonic_ns();
};

// Serves its share of the connections on a thread of its own.
class Worker {
public:
  explicit Worker(Counters &counters) : counters_(counters) {
    poller_.add(bell_.fd(), EPOLLIN, nullptr);
    thread_ = std::thread([this] { run(); });
  }

  ~Worker() {
    stopped_ = true;
    bell_.ring();
    thread_.join();
  }

  void add(Fd fd) {
    const std::lock_guard guard(mutex_);
    connections_.push_back({std::move(fd), {}});
    Connection &connection = connections_.back();
    counters_.connections++;
    poller_.add(connection.fd.get(), EPOLLIN, &connection);
  }

private:
  void run() {
    while (!stopped_) {
      const auto events = poller_.wait(static_cast<int>(kSweepNs / 1'000'000));
      const std::lock_guard guard(mutex_);
      for (const epoll_event &event : events)
        if (auto *connection = static_cast<Connection *>(event.data.ptr))
          serve(*connection);
      sweep();
    }
  }

  void serve(Connection &connection) {
    try {
      for (int i = 0; i < kReadsInARow; i++)
        if (!read(connection))
          return;
    } catch (const native::Failure &) {
      counters_.dropped++;
      close(connection);
    }
  }

  // Reads once. Returns true if there may be more to read. Throws native::Failure if the connection must be closed.
  bool read(Connection &connection) {
    FlowReceiver &receiver = connection.receiver;
    const std::span<char> room = receiver.header_room();
    // MSG_TRUNC discards the bytes without copying them.
    const std::uint64_t wanted = room.empty() ? std::min<std::uint64_t>(receiver.body_left(), INT_MAX) : room.size();
    const ssize_t n =
        recv(connection.fd.get(), room.empty() ? nullptr : room.data(), wanted, room.empty() ? MSG_TRUNC : 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return false;
    if (n <= 0)
      return end(connection);
    connection.last_byte_ns = native::monotonic_ns();
    if (!room.empty()) {
      receiver.took_header(static_cast<std::size_t>(n));
      return true;
    }
    counters_.bytes += static_cast<std::uint64_t>(n);
    if (receiver.took_body(static_cast<std::uint64_t>(n)))
      acknowledge(connection);
    return static_cast<std::uint64_t>(n) == wanted;
  }

  bool end(Connection &connection) {
    if (!connection.receiver.between_flows())
      throw native::Failure("ended amid a flow");
    close(connection);
    return false;
  }

  void acknowledge(Connection &connection) {
    counters_.flows++;
    const Acknowledgement number = connection.receiver.acknowledgement();
    if (send(connection.fd.get(), number.data(), number.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(number.size()))
      throw native::Failure("does not read what it is answered");
  }

  void close(Connection &connection) {
    counters_.connections--;
    connections_.remove_if([&connection](const Connection &each) { return &each == &connection; });
  }

  // Closes connections that stalled within a flow. Between flows they may be idle; TCP keepalive detects dead peers.
  void sweep() {
    const Nanos now_ns = native::monotonic_ns();
    if (now_ns - swept_ns_ < kSweepNs)
      return;
    swept_ns_ = now_ns;
    const auto stalled = connections_.remove_if([now_ns](Connection &each) {
      return !each.receiver.between_flows() && now_ns - each.last_byte_ns > kStallTimeoutNs;
    });
    counters_.connections -= stalled;
    counters_.dropped += stalled;
  }

  Counters &counters_;
  Poller poller_;
  Bell bell_;
  std::mutex mutex_;
  std::list<Connection> connections_;
  Nanos swept_ns_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

// Accepts the connections of senders that have the secret, and distributes them over workers.
class Sink {
public:
  explicit Sink(const SinkOptions &options)
      : options_(options), endpoint_(options.bind), door_(listener(), kHelloBytes, kMaxGuests) {
    native::step_down();
    for (unsigned i = 0; i < options.threads; i++)
      workers_.push_back(std::make_unique<Worker>(counters_));
  }

  void run(native::Control &control) {
    expected_ = make_hello(native::parse_secret(control.await_line()));
    say({{"event", "ready"}, {"address", endpoint_.text()}});
    try {
      while (true)
        look(control);
    } catch (const native::Stopped &reason) {
      say({{"event", "done"},
           {"reason", reason.what()},
           {"flows", counters_.flows.load()},
           {"bytes", counters_.bytes.load()},
           {"open_connections", counters_.connections.load()},
           {"dropped_connections", counters_.dropped.load()},
           {"refused_connections", refused_ + door_.shown_out()}});
    }
  }

private:
  Fd listener() {
    Fd fd = listen_at(endpoint_);
    native::set_option(fd.get(), IPPROTO_IP, IP_TOS, static_cast<int>(options_.dscp << 2)); // what it takes has its own
    return fd;
  }

  void look(native::Control &control) {
    std::vector<pollfd> fds;
    door_.add_interests(fds);
    control.wait(fds, door_.deadline());
    door_.look([this](Fd fd, const std::string &hello) { receive(std::move(fd), hello); });
  }

  void receive(Fd fd, const std::string &hello) {
    const bool known = native::same_bytes(hello, expected_);
    const bool room = counters_.connections < options_.most_connections;
    if (!known || !room || send(fd.get(), kAcceptance.data(), kAcceptance.size(), MSG_NOSIGNAL) < 0) {
      refused_++;
      if (known && !room && !std::exchange(full_, true))
        std::cerr << "crossgen: refused a connection: " << options_.most_connections
                  << " are open; allow more with --most-connections\n";
      return;
    }
    prepare(fd.get());
    workers_[next_worker_++ % workers_.size()]->add(std::move(fd));
  }

  void say(const nlohmann::ordered_json &event) {
    lines_.add(event.dump());
    lines_.finish(2'000);
  }

  const SinkOptions &options_;
  std::string expected_;
  Endpoint endpoint_;
  native::Door door_;
  Counters counters_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  std::uint64_t refused_ = 0;
  bool full_ = false;
  native::Lines lines_{STDOUT_FILENO, 1 << 16};
};

} // namespace

void run_sink(const SinkOptions &options) {
  allow_descriptors(options.most_connections);
  native::Control control; // before any thread starts: they inherit the signals that it blocks
  Sink(options).run(control);
}

} // namespace crossgen
