// SPDX-License-Identifier: Apache-2.0
#include "native/control/handshake_listener.hpp"

#include "native/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace native {
namespace {

// The time in which a connection must send its hello. The kernel holds a silent connection for about as long.
constexpr Nanos kHelloTimeoutNs = 5'000'000'000;
constexpr Nanos kRestNs = 100'000'000;

// Limit on connections accepted in a row, so that the connections accepted before are served in time.
constexpr int kAcceptedInARow = 64;

Fd defer_accept(Fd listener) {
  set_option(listener.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, kHelloTimeoutNs / 1'000'000'000);
  return listener;
}

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

Door::Door(Fd listener, std::size_t hello_bytes, std::size_t most_guests)
    : listener_(defer_accept(std::move(listener))), hello_bytes_(hello_bytes), most_guests_(most_guests) {}

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
  read_hellos(enter);
  accept_some(enter);
}

void Door::read_hellos(const Enter &enter) {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (stays(*guest)) {
      guest++;
      continue;
    }
    Guest leaving = std::move(*guest);
    guest = guests_.erase(guest);
    dismiss(std::move(leaving), enter);
  }
}

void Door::accept_some(const Enter &enter) {
  for (int i = 0; i < kAcceptedInARow; i++) {
    Guest guest{listener_.accept(), monotonic_ns() + kHelloTimeoutNs};
    const bool accepted = static_cast<bool>(guest.fd);
    if (accepted && !stays(guest)) {
      dismiss(std::move(guest), enter);
      continue;
    }
    // The kernel looks for a descriptor before it looks for a connection, so only the first failure says that a
    // connection waits.
    const bool lacks_descriptors = i == 0 && !accepted && listener_.rests_until();
    if (!guests_.empty() && (lacks_descriptors || (accepted && guests_.size() == most_guests_))) {
      guests_.pop_front();
      shown_out_++;
    }
    if (!accepted)
      return;
    guests_.push_back(std::move(guest));
  }
}

// Reads a guest's hello. Returns true if more of the hello may follow.
bool Door::stays(Guest &guest) const {
  const std::size_t have = guest.hello.size();
  guest.hello.resize(hello_bytes_);
  const ssize_t n = recv(guest.fd.get(), guest.hello.data() + have, hello_bytes_ - have, 0);
  const bool waits = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  guest.hello.resize(have + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return guest.hello.size() < hello_bytes_ && waits && monotonic_ns() < guest.deadline_ns;
}

// Passes on a guest with a complete hello, and closes the connection of any other.
void Door::dismiss(Guest guest, const Enter &enter) {
  if (guest.hello.size() == hello_bytes_)
    enter(std::move(guest.fd), guest.hello);
  else
    shown_out_++;
}

} // namespace native
