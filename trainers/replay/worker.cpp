// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/worker.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace replay {
namespace {

using native::Nanos;

// What the kernel may hold unsent, in time of the flow's demand: enough to bridge our wake-ups while the network is the
// limit, and little enough that what is sent follows what is available.
constexpr Nanos kUnsentNs = 2'000'000;
constexpr std::uint64_t kLeastUnsentBytes = 16'384;

constexpr Nanos kEndLookNs = 1'000'000;

// Nobody looks at the payload.
constexpr std::size_t kSendBytes = 256 * 1024;
const char kZeros[kSendBytes] = {};

void set_option(const native::Fd &fd, int level, int option, std::uint64_t bytes) {
  const int value = static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX));
  if (setsockopt(fd.get(), level, option, &value, sizeof value) != 0)
    throw native::system_failure("cannot set a socket option");
}

int take_error(const native::Fd &fd) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

} // namespace

Worker::Worker(const Options &options, Ring ring, native::Control &control, Record &record)
    : options_(options), ring_(std::move(ring)), control_(control), record_(record),
      jitter_(options.seed, options.job, options.jitter), flows_(options.flows) {
  for (const Phase &phase : options.profile.phases)
    for (unsigned flow = 0; flow < options.flows; flow++)
      flows_[flow].expected += options.iterations * ring_phase(phase).share(flow);
}

RingPhase Worker::ring_phase(const Phase &phase) const {
  return {phase, static_cast<unsigned>(options_.workers.size()), options_.flows};
}

void Worker::play() {
  phase_start_ns_ = wait_for_start() + options_.start_offset_ns;
  wait_until(phase_start_ns_);
  started_ = true;
  iteration_.start = Moment::at(phase_start_ns_);
  while (iteration_.number < options_.iterations)
    play_iteration(jitter_.next_factor());
}

Nanos Worker::wait_for_start() {
  std::optional<std::string> line;
  while (!(line = control_.line()))
    wait(std::nullopt);
  return native::parse_start(*line);
}

void Worker::play_iteration(double compute_factor) {
  for (const Phase &phase : options_.profile.phases)
    play_phase(phase, compute_factor);
  iteration_.comm_end = Moment::at(phase_start_ns_);
  if (iteration_.compute_end.monotonic_ns == 0)
    iteration_.compute_end = iteration_.comm_end;
  record_.iteration(iteration_);

  Iteration next;
  next.number = iteration_.number + 1;
  next.start = iteration_.comm_end;
  iteration_ = next;
}

void Worker::play_phase(const Phase &phase, double compute_factor) {
  if (!phase.communicates()) {
    phase_start_ns_ += std::llround(static_cast<double>(phase.compute_ns) * compute_factor);
    wait_until(phase_start_ns_);
    return;
  }
  if (iteration_.compute_end.monotonic_ns == 0)
    iteration_.compute_end = Moment::at(phase_start_ns_);
  communicate(ring_phase(phase));
  iteration_.sent_bytes += phase.bytes;
  iteration_.received_bytes += phase.bytes;
  phase_start_ns_ = native::monotonic_ns();
}

// Ends when all was received, which is when an all-reduce has its result, and all was handed to the network: an
// all-reduce does not return while its buffers are still to be sent.
void Worker::communicate(const RingPhase &phase) {
  set_unsent_limits(std::max(kLeastUnsentBytes, phase.flow_demand(kUnsentNs)));
  while (true) {
    // One look at the clock for both: what is not sent now must be looked at again.
    const Nanos now_ns = native::monotonic_ns();
    set_receive_quanta(phase);
    send_all(phase, now_ns - phase_start_ns_);
    if (all_sent(phase) && all_received(phase) && all_left(SIOCOUTQNSD))
      break;
    wait(next_look(phase, now_ns));
  }
  for (unsigned flow = 0; flow < options_.flows; flow++) {
    flows_[flow].sent = 0;
    flows_[flow].received -= phase.share(flow);
  }
}

std::optional<Nanos> Worker::next_look(const RingPhase &phase, Nanos now_ns) const {
  if (all_sent(phase)) {
    // What is still unsent leaves without telling us; a missing byte wakes us.
    return all_received(phase) ? std::optional(now_ns + RingPhase::kTickNs) : std::nullopt;
  }
  // Blocked flows are woken by the network; demand has a clock.
  if (std::all_of(flows_.begin(), flows_.end(), [](const Flow &flow) { return flow.blocked; }))
    return std::nullopt;
  const std::optional<Nanos> tick = phase.next_tick(now_ns - phase_start_ns_);
  return tick ? std::optional(phase_start_ns_ + *tick) : std::nullopt;
}

void Worker::wait_until(Nanos deadline_ns) {
  while (native::monotonic_ns() < deadline_ns)
    wait(deadline_ns);
}

// Waits for the deadline, or less: for bytes, or for room in a blocked flow.
void Worker::wait(std::optional<Nanos> deadline_ns) {
  polled_.clear();
  for (unsigned flow = 0; flow < options_.flows; flow++)
    polled_.push_back(
        {ended_ ? -1 : ring_.out[flow].get(), static_cast<short>(POLLIN | (flows_[flow].blocked ? POLLOUT : 0)), 0});
  for (unsigned flow = 0; flow < options_.flows; flow++)
    polled_.push_back({flows_[flow].left_ended ? -1 : ring_.in[flow].get(), POLLIN, 0});
  const bool sleeps = deadline_ns && native::monotonic_ns() < *deadline_ns;
  control_.wait(polled_, deadline_ns);
  if (sleeps)
    iteration_.late_ns = std::max(iteration_.late_ns, native::monotonic_ns() - *deadline_ns);

  for (unsigned flow = 0; flow < options_.flows; flow++) {
    const short out = polled_[flow].revents;
    if ((out & (POLLIN | POLLERR | POLLHUP)) != 0)
      fail_peer(options_.right(), take_error(ring_.out[flow])); // it never sends: it closed
    if ((out & POLLOUT) != 0)
      flows_[flow].blocked = false;
    if (polled_[options_.flows + flow].revents != 0)
      receive(flow);
  }
}

// Counts and discards what came: MSG_TRUNC spares the copy.
void Worker::receive(unsigned flow) {
  Flow &state = flows_[flow];
  const ssize_t n = recv(ring_.in[flow].get(), nullptr, INT_MAX, MSG_TRUNC | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n > 0) {
    state.received += static_cast<std::uint64_t>(n);
    state.expected -= static_cast<std::uint64_t>(n);
    return;
  }
  if (state.expected > 0)
    fail_peer(options_.left(), n == 0 ? 0 : errno);
  state.left_ended = true;
}

void Worker::send_all(const RingPhase &phase, Nanos elapsed_ns) {
  for (unsigned flow = 0; flow < options_.flows; flow++)
    if (!flows_[flow].blocked)
      send(phase, flow, elapsed_ns);
}

void Worker::send(const RingPhase &phase, unsigned flow, Nanos elapsed_ns) {
  Flow &state = flows_[flow];
  while (const std::uint64_t bytes = phase.sendable(flow, elapsed_ns, state.sent, state.received)) {
    const std::size_t length = std::min<std::uint64_t>(bytes, kSendBytes);
    const ssize_t n = ::send(ring_.out[flow].get(), kZeros, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      fail_peer(options_.right(), errno);
    state.sent += static_cast<std::uint64_t>(std::max<ssize_t>(n, 0));
    state.blocked = n < static_cast<ssize_t>(length);
    if (state.blocked)
      return;
  }
}

bool Worker::all_sent(const RingPhase &phase) const {
  for (unsigned flow = 0; flow < options_.flows; flow++)
    if (flows_[flow].sent < phase.share(flow))
      return false;
  return true;
}

bool Worker::all_received(const RingPhase &phase) const {
  for (unsigned flow = 0; flow < options_.flows; flow++)
    if (flows_[flow].received < phase.share(flow))
      return false;
  return true;
}

// Whether the kernel holds nothing any more: unsent (SIOCOUTQNSD) or unacknowledged (SIOCOUTQ).
bool Worker::all_left(int request) const {
  return std::all_of(ring_.out.begin(), ring_.out.end(), [request](const native::Fd &fd) {
    int bytes = 0;
    return ioctl(fd.get(), static_cast<unsigned long>(request), &bytes) == 0 && bytes == 0;
  });
}

// We are woken by this many bytes, not by each packet. TCP acknowledges each packet all the same, and sooner: what is
// below this mark does not wait for our reading.
void Worker::set_receive_quanta(const RingPhase &phase) {
  for (unsigned flow = 0; flow < options_.flows; flow++) {
    Flow &state = flows_[flow];
    const std::uint64_t quantum = phase.receive_quantum(flow, state.received);
    if (quantum != std::exchange(state.receive_quantum, quantum))
      set_option(ring_.in[flow], SOL_SOCKET, SO_RCVLOWAT, quantum);
  }
}

void Worker::set_unsent_limits(std::uint64_t bytes) {
  if (bytes == std::exchange(unsent_limit_, bytes))
    return;
  for (const native::Fd &fd : ring_.out)
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

void Worker::end() {
  while (!all_left(SIOCOUTQ))
    wait(native::monotonic_ns() + kEndLookNs);
  for (unsigned flow = 0; flow < options_.flows; flow++)
    record_.flow(options_, flow, ring_.out[flow].get(), Ring::kOverheadBytes);
  for (const native::Fd &fd : ring_.out)
    shutdown(fd.get(), SHUT_WR);
  ended_ = true;
  while (!std::all_of(flows_.begin(), flows_.end(), [](const Flow &flow) { return flow.left_ended; }))
    wait(std::nullopt);
}

void Worker::fail_peer(const Peer &peer, int error) const {
  const bool closed = error == 0 || error == ECONNRESET || error == EPIPE;
  throw native::Failure("peer " + peer.text() +
                        (closed ? " closed the connection" : std::string(" was lost (") + std::strerror(error) + ")") +
                        (started_ ? " in iteration " + std::to_string(iteration_.number) : " before the start"));
}

} // namespace replay
