// SPDX-License-Identifier: Apache-2.0
#include "crossgen/metrics.hpp"

#include <sys/socket.h>

namespace crossgen {
namespace {

using native::Nanos;

constexpr std::size_t kMostGuests = 8;
constexpr std::size_t kMostRequestBytes = 8192;
constexpr Nanos kPatienceNs = 2'000'000'000;

std::string with_head(const char *status, const std::string &body) {
  return std::string("HTTP/1.0 ") + status +
         "\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

} // namespace

std::string answer_http(const std::string &request, const std::function<std::string()> &text) {
  if (request.size() > kMostRequestBytes)
    return with_head("431 Request Header Fields Too Large", "");
  if (request.find("\r\n\r\n") == std::string::npos)
    return "";
  if (request.starts_with("GET /metrics "))
    return with_head("200 OK", text());
  return with_head("404 Not Found", "expected GET /metrics\n");
}

Metrics::Metrics(Endpoint endpoint, std::function<std::string()> text)
    : endpoint_(endpoint), text_(std::move(text)), listener_(listen_at(endpoint_)) {}

void Metrics::add_interests(std::vector<pollfd> &fds) const {
  fds.push_back(listener_.interest());
  for (const Guest &guest : guests_)
    fds.push_back({guest.fd.get(), static_cast<short>(guest.answer.empty() ? POLLIN : POLLOUT), 0});
}

void Metrics::handle(std::span<const pollfd> ready) {
  const Nanos now_ns = native::monotonic_ns();
  std::size_t i = 1;
  std::erase_if(guests_,
                [&](Guest &guest) { return (ready[i++].revents != 0 && !stays(guest)) || now_ns > guest.deadline_ns; });
  if (ready[0].revents == 0)
    return;
  if (native::Fd fd = listener_.accept())
    guests_.push_back({std::move(fd), now_ns + kPatienceNs});
  if (guests_.size() > kMostGuests)
    guests_.pop_front();
}

bool Metrics::stays(Guest &guest) {
  if (guest.answer.empty())
    return read(guest);
  const ssize_t n =
      send(guest.fd.get(), guest.answer.data() + guest.sent, guest.answer.size() - guest.sent, MSG_NOSIGNAL);
  guest.sent += n > 0 ? static_cast<std::size_t>(n) : 0;
  return (n > 0 || errno == EAGAIN) && guest.sent < guest.answer.size();
}

bool Metrics::read(Guest &guest) {
  char chunk[1024];
  const ssize_t n = recv(guest.fd.get(), chunk, sizeof chunk, 0);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR;
  guest.request.append(chunk, static_cast<std::size_t>(n));
  guest.answer = answer_http(guest.request, text_);
  return n > 0;
}

} // namespace crossgen
