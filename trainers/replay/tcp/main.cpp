// SPDX-License-Identifier: Apache-2.0
// replay: the worker whose bytes go over TCP.
#include "native/errors.hpp"
#include "native/sockets.hpp"
#include "trainers/replay/network/peer_connections.hpp"
#include "trainers/replay/program.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <climits>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

namespace replay {
namespace {

const char kZeros[Connection::kMaxBytes] = {};

std::uint16_t port_of(int fd, int (*name)(int, sockaddr *, socklen_t *)) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  name(fd, reinterpret_cast<sockaddr *>(&address), &length);
  return ntohs(address.sin_port);
}

class SocketConnection final : public Connection {
public:
  explicit SocketConnection(Socket socket) : Connection(socket.peer, socket.number), fd_(std::move(socket.fd)) {}

  pollfd interest(bool blocked) const override {
    return {fd_.get(), static_cast<short>(POLLIN | (blocked ? POLLOUT : 0)), 0};
  }
  bool has_room(short revents) const override { return (revents & POLLOUT) != 0; }

  ssize_t send(std::size_t bytes) override { return ::send(fd_.get(), kZeros, bytes, MSG_NOSIGNAL | MSG_DONTWAIT); }
  // MSG_TRUNC spares the copy.
  ssize_t receive() override { return recv(fd_.get(), nullptr, INT_MAX, MSG_TRUNC | MSG_DONTWAIT); }
  ssize_t answer() override { return ::send(fd_.get(), kZeros, 1, MSG_NOSIGNAL | MSG_DONTWAIT); }
  ssize_t take_answers() override {
    char answers[64];
    return recv(fd_.get(), answers, sizeof answers, MSG_DONTWAIT);
  }

  bool has_left() const override { return holds_nothing(SIOCOUTQNSD); }
  bool is_acknowledged() const override { return holds_nothing(SIOCOUTQ); }

  void limit_unsent(std::uint64_t bytes) override { set(unsent_limit_, bytes, IPPROTO_TCP, TCP_NOTSENT_LOWAT); }
  // The mark does not delay TCP's acknowledgments: bytes below it are acknowledged before they are read.
  void wake_by(std::uint64_t bytes) override { set(receive_quantum_, bytes, SOL_SOCKET, SO_RCVLOWAT); }

  void shut() override { shutdown(fd_.get(), SHUT_WR); }

  Flow flow() const override {
    tcp_info info{};
    socklen_t length = sizeof info;
    char congestion[16] = {}; // TCP_CA_NAME_MAX
    socklen_t name_length = sizeof congestion;
    if (getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        getsockopt(fd_.get(), IPPROTO_TCP, TCP_CONGESTION, congestion, &name_length) != 0)
      throw native::system_failure("cannot read a socket's TCP_INFO");
    const std::uint64_t acked = info.tcpi_bytes_acked;
    return {port_of(fd_.get(), getsockname),
            port_of(fd_.get(), getpeername),
            acked - std::min(acked, Mesh::kOverheadBytes),
            congestion,
            info.tcpi_total_retrans,
            info.tcpi_delivered,
            info.tcpi_delivered_ce};
  }

private:
  bool holds_nothing(unsigned long request) const {
    int bytes = 0;
    return ioctl(fd_.get(), request, &bytes) == 0 && bytes == 0;
  }

  void set(std::uint64_t &present, std::uint64_t bytes, int level, int option) {
    if (std::exchange(present, bytes) == bytes)
      return;
    native::set_option(fd_.get(), level, option, static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX)));
  }

  native::Fd fd_;
  std::uint64_t unsent_limit_ = 0;
  std::uint64_t receive_quantum_ = 1;
};

class Sockets final : public Network {
public:
  void listen(const Options &options) override { listener_ = listen_for_peers(options); }

  Connections connect(const Options &options, const std::string &secret, native::Control &control) override {
    Mesh mesh = connect_mesh(options, std::move(listener_), secret, control);
    Connections connections;
    for (Socket &socket : mesh.out)
      connections.out.push_back(std::make_unique<SocketConnection>(std::move(socket)));
    for (Socket &socket : mesh.in)
      connections.in.push_back(std::make_unique<SocketConnection>(std::move(socket)));
    return connections;
  }

private:
  native::Fd listener_;
};

} // namespace
} // namespace replay

int main(int argc, char **argv) {
  replay::Sockets network;
  return replay::play(argc, argv, network);
}
