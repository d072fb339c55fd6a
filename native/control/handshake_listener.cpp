// SPDX-License-Identifier: Apache-2.0
#include "native/control/handshake_listener.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace native {
namespace {

constexpr Nanos kPatienceNs = 5'000'000'000;
constexpr Nanos kRestNs = 100'000'000;

// More than this at once would keep those waiting that are in already.
constexpr int kAcceptedInARow = 64;

} // namespace

std::optional<Nanos> Listener::rests_until() const {
  return monotonic_ns() < rests_until_ns_ ? std::optional(rests_until_ns_) : std::nullopt;
}

Fd Listener::accept() {
  Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
    rests_until_ns_ = monotonic_ns() + kRestNs;
  return fd;
}

void Door::add_interests(std::vector<pollfd> &fds) const {
  fds.push_back(listener_.interest());
  for (const Guest &guest : guests_)
    fds.push_back({guest.fd.get(), POLLIN, 0});
}

std::optional<Nanos> Door::deadline() const {
  const std::optional<Nanos> rest_ns = listener_.rests_until();
  if (guests_.empty())
    return rest_ns;
  return std::min(rest_ns.value_or(guests_.front().deadline_ns), guests_.front().deadline_ns);
}

void Door::look(const Enter &enter) {
  accept_some();
  const Nanos now_ns = monotonic_ns();
  std::erase_if(guests_, [&](Guest &guest) { return !stays(guest, now_ns, enter); });
}

void Door::accept_some() {
  for (int i = 0; i < kAcceptedInARow; i++) {
    Fd fd = listener_.accept();
    // The kernel looks for a descriptor before it looks whether anybody waits: only the first refusal tells something.
    const bool lacks_descriptors = i == 0 && !fd && listener_.rests_until();
    if (!guests_.empty() && (lacks_descriptors || (fd && guests_.size() == most_guests_))) {
      guests_.pop_front();
      shown_out_++;
    }
    if (!fd)
      return;
    guests_.push_back({std::move(fd), monotonic_ns() + kPatienceNs});
  }
}

bool Door::stays(Guest &guest, Nanos now_ns, const Enter &enter) {
  const std::size_t have = guest.hello.size();
  guest.hello.resize(hello_bytes_);
  const ssize_t n = recv(guest.fd.get(), guest.hello.data() + have, hello_bytes_ - have, 0);
  const bool waits = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  guest.hello.resize(have + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (guest.hello.size() == hello_bytes_) {
    enter(std::move(guest.fd), guest.hello);
    return false;
  }
  if (waits && now_ns < guest.deadline_ns)
    return true;
  shown_out_++;
  return false;
}

} // namespace native
