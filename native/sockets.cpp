// SPDX-License-Identifier: Apache-2.0
#include "native/sockets.hpp"

#include "native/errors.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace native {

sockaddr_in socket_address(in_addr ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr = ip;
  return address;
}

Fd open_tcp_socket() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd)
    throw system_failure("cannot open a socket");
  return fd;
}

int take_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void set_option(int fd, int level, int option, int value) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0)
    throw system_failure("cannot set a socket option");
}

void tune_connection(int fd, int timeout_ms, int probe_s) {
  constexpr int kIdleS = 5;
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
}

} // namespace native
