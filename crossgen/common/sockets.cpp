// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/sockets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <sys/resource.h>
#include <sys/socket.h>

namespace crossgen {
namespace {

using native::Fd;

// A connection ends if its peer is unreachable for this long. A peer that closes is noticed at once.
constexpr int kKeepaliveTimeoutMs = 15'000;
constexpr int kProbeS = 2;

constexpr rlim_t kOtherDescriptors = 256;

// As many connections as a sink serves by default. The kernel allows no more than net.core.somaxconn, which is 4,096,
// too. Beyond it the kernel drops packets of new connections, which are then a second late.
constexpr int kBacklog = 4096;

} // namespace

Endpoint Endpoint::parse(const std::string &text) {
  const std::size_t colon = text.find(':');
  const std::string host = text.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  Endpoint endpoint;
  const char *end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, endpoint.port);
  if (inet_pton(AF_INET, host.c_str(), &endpoint.ip) != 1 || parsed.ec != std::errc{} || parsed.ptr != end)
    throw native::Failure("expected IPV4_ADDRESS:PORT, found \"" + text + "\"");
  return endpoint;
}

std::string Endpoint::text() const {
  char host[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &ip, host, sizeof host)) + ":" + std::to_string(port);
}

sockaddr_in Endpoint::address() const { return native::socket_address(ip, port); }

Fd listen_at(Endpoint &endpoint) {
  Fd fd = native::open_tcp_socket();
  native::set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in address = endpoint.address();
  socklen_t length = sizeof address;
  if (bind(fd.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0 || listen(fd.get(), kBacklog) != 0)
    throw native::system_failure("cannot listen at " + endpoint.text());
  getsockname(fd.get(), reinterpret_cast<sockaddr *>(&address), &length);
  endpoint.port = ntohs(address.sin_port);
  return fd;
}

void bind_source(int fd, const Endpoint &source) {
  native::set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const sockaddr_in address = source.address();
  if (bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    throw native::system_failure("cannot send from " + source.text());
}

void begin_connect(int fd, const Endpoint &endpoint) {
  prepare(fd);
  const sockaddr_in address = endpoint.address();
  if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 && errno != EINPROGRESS)
    throw native::system_failure("cannot connect to " + endpoint.text());
}

void allow_descriptors(std::uint64_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = wanted + kOtherDescriptors;
  if (limit.rlim_cur >= needed)
    return;
  limit.rlim_cur = needed;
  limit.rlim_max = std::max(limit.rlim_max, needed); // only root may raise it
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw native::system_failure("cannot open " + std::to_string(wanted) + " connections (see ulimit -n)");
}

void prepare(int fd) { native::tune_connection(fd, kKeepaliveTimeoutMs, kProbeS); }

} // namespace crossgen
