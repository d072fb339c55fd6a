// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/worker.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace replay {
namespace {

using native::Nanos;

// Limit on unsent bytes, as time of the flow's demand. It must last between two wake-ups while the network is the
// limit, and be short enough that sending follows the demand.
constexpr Nanos kUnsentNs = 2'000'000;
constexpr std::uint64_t kMinUnsentBytes = 16'384;

constexpr Nanos kEndLookNs = 1'000'000;

// Hosts' clocks differ. A peer that ends at most this long before this worker's departure has departed too.
constexpr Nanos kDepartureNs = 100'000'000;

constexpr pollfd kNothing{-1, 0, 0};

// Returns the place of a connection, by the rank of its peer and its number among those to the peer.
template <typename Ends> std::size_t find_connection(const Ends &ends, unsigned peer, unsigned number) {
  const auto found = std::find_if(ends.begin(), ends.end(), [&](const auto &each) {
    return each.connection->peer() == peer && each.connection->number() == number;
  });
  return static_cast<std::size_t>(found - ends.begin());
}

} // namespace

Worker::Worker(const Options &options, Connections connections, native::Control &control, Record &record)
    : options_(options), control_(control), record_(record),
      jitter_(options.job.seed, options.job.name, options.job.jitter) {
  for (auto &connection : connections.out)
    out_.push_back({std::move(connection)});
  for (auto &connection : connections.in)
    in_.push_back({std::move(connection)});
  for (const Phase &phase : options.job.phases) {
    plans_.push_back(plan(phase));
    for (const Part &part : plans_.back().receives)
      in_[part.place].expected += options.job.iterations * part.pace.share();
  }
}

Worker::Plan Worker::plan(const Phase &phase) const {
  Plan plan;
  const unsigned connections = options_.job.connections;
  for (const Transfer &transfer : phase.transfers)
    for (unsigned each = 0; each < connections; each++) {
      const unsigned number = transfer.number(each, connections);
      const Pace pace(transfer, phase.alone_ns, connections, each);
      if (transfer.from == options_.rank) {
        std::vector<std::size_t> feeders;
        for (const unsigned feeder : transfer.feeders)
          feeders.push_back(find_connection(in_, feeder, number));
        plan.sends.push_back({find_connection(out_, transfer.to, number), pace, transfer.answered(), feeders});
      }
      if (transfer.to == options_.rank)
        plan.receives.push_back({find_connection(in_, transfer.from, number), pace, transfer.answered(), {}});
    }
  return plan;
}

void Worker::play() {
  start_ns_ = wait_for_start();
  phase_start_ns_ = start_ns_ + options_.job.begins_ns;
  if (options_.job.departs_ns)
    departs_ns_ = start_ns_ + *options_.job.departs_ns;
  try {
    wait_until(phase_start_ns_);
    started_ = true;
    iteration_.start = Moment::at(phase_start_ns_);
    while (iteration_.number < options_.job.iterations)
      play_iteration(jitter_.next_factor() * options_.computing);
  } catch (const Departed &) {
    departed_ = true;
  }
}

Nanos Worker::wait_for_start() {
  std::optional<std::string> line;
  while (!(line = control_.line()))
    wait(std::nullopt);
  return native::parse_start(*line);
}

// Acts as the time-shift agent (interleaving thesis, section 4.4.2, step 3). Its delay is part of the iteration.
void Worker::keep_timetable() {
  if (!options_.job.timetable)
    return;
  iteration_.delay_ns = options_.job.timetable->delay_ns(phase_start_ns_ - start_ns_);
  phase_start_ns_ += *iteration_.delay_ns;
  wait_until(phase_start_ns_);
}

void Worker::play_iteration(double compute_factor) {
  keep_timetable();
  for (std::size_t i = 0; i < plans_.size(); i++)
    play_phase(options_.job.phases[i], plans_[i], compute_factor);
  iteration_.comm_end = Moment::at(phase_start_ns_);
  if (iteration_.compute_end.monotonic_ns == 0)
    iteration_.compute_end = iteration_.comm_end;
  record_.iteration(iteration_);

  Iteration next;
  next.number = iteration_.number + 1;
  next.start = iteration_.comm_end;
  iteration_ = next;
}

void Worker::play_phase(const Phase &phase, Plan &plan, double compute_factor) {
  if (!phase.communicates()) {
    phase_start_ns_ += std::llround(static_cast<double>(phase.compute_ns) * compute_factor);
    wait_until(phase_start_ns_);
    return;
  }
  if (plan.sends.empty() && plan.receives.empty())
    return;
  if (iteration_.compute_end.monotonic_ns == 0)
    iteration_.compute_end = Moment::at(phase_start_ns_);
  communicate(plan);
  for (const Part &part : plan.sends)
    iteration_.sent_bytes += part.pace.share();
  for (const Part &part : plan.receives)
    iteration_.received_bytes += part.pace.share();
  phase_start_ns_ = native::monotonic_ns();
}

// Plays a communication phase. It ends once all data are received, all data have left the host, and all receivers that
// send answers have everything.
void Worker::communicate(Plan &plan) {
  advise_senders(plan);
  while (true) {
    // Sending and the next wake-up use one reading of the clock, so that bytes that become available now are not
    // missed.
    const Nanos now_ns = native::monotonic_ns();
    advise_receivers(plan);
    answer(plan);
    send_all(plan, now_ns - phase_start_ns_);
    if (all_sent(plan) && all_received(plan) && all_answered(plan) && all_left())
      break;
    wait(next_look(plan, now_ns));
  }
  for (const Part &part : plan.sends) {
    out_[part.place].sent = 0;
    out_[part.place].answers -= part.answered && part.pace.share() > 0;
  }
  for (const Part &part : plan.receives) {
    in_[part.place].received -= part.pace.share();
    in_[part.place].answered = false;
  }
}

std::optional<Nanos> Worker::next_look(const Plan &plan, Nanos now_ns) const {
  if (all_sent(plan)) {
    // No event reports that the last bytes have left, so poll for that. Missing bytes and answers wake the worker.
    return all_received(plan) && all_answered(plan) ? std::optional(now_ns + Pace::kTickNs) : std::nullopt;
  }
  // The network wakes blocked connections. The others wait for the next tick of their demand.
  std::optional<Nanos> next;
  for (const Part &part : plan.sends)
    if (!out_[part.place].blocked)
      if (const std::optional<Nanos> tick = part.pace.next_tick(now_ns - phase_start_ns_))
        next = phase_start_ns_ + *tick;
  return next;
}

void Worker::wait_until(Nanos deadline_ns) {
  while (native::monotonic_ns() < deadline_ns)
    wait(deadline_ns);
}

// Waits for bytes, answers, or room in a blocked connection, until the deadline at most. Throws Departed at the time of
// departure.
void Worker::wait(std::optional<Nanos> deadline_ns) {
  const bool departing = departs_ns_ && !departed_ && !ended_;
  if (departing)
    deadline_ns = std::min(deadline_ns.value_or(*departs_ns_), *departs_ns_);
  polled_.clear();
  for (const Out &out : out_)
    polled_.push_back(ended_ ? kNothing : out.connection->interest(out.blocked));
  for (const In &in : in_)
    polled_.push_back(in.ended ? kNothing : in.connection->interest(false));
  const bool sleeps = deadline_ns && native::monotonic_ns() < *deadline_ns;
  control_.wait(polled_, deadline_ns);
  if (sleeps)
    iteration_.late_ns = std::max(iteration_.late_ns, native::monotonic_ns() - *deadline_ns);

  for (std::size_t i = 0; i < out_.size(); i++) {
    if ((polled_[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0)
      take_answer(out_[i]);
    out_[i].blocked = out_[i].blocked && !out_[i].connection->has_room(polled_[i].revents);
  }
  for (std::size_t i = 0; i < in_.size(); i++)
    if (polled_[out_.size() + i].revents != 0)
      receive(in_[i]);
  if (departing && native::monotonic_ns() >= *departs_ns_)
    throw Departed();
}

void Worker::receive(In &in) {
  const ssize_t n = in.connection->receive();
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n > 0) {
    if (static_cast<std::uint64_t>(n) > in.expected)
      throw native::Failure("peer " + options_.job.workers[in.connection->peer()].text() +
                            " sent more than its job has");
    in.received += static_cast<std::uint64_t>(n);
    in.expected -= static_cast<std::uint64_t>(n);
    return;
  }
  const bool may_end = departs_ns_ && native::monotonic_ns() >= *departs_ns_ - kDepartureNs;
  if (in.expected > 0 && !may_end)
    fail_peer(*in.connection, n == 0 ? 0 : errno);
  in.ended = true;
}

// Counts answers. A receiver sends nothing else, so an end or an error means that the peer is gone.
void Worker::take_answer(Out &out) {
  const ssize_t n = out.connection->take_answers();
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    fail_peer(*out.connection, n == 0 ? 0 : errno);
  out.answers += static_cast<std::uint64_t>(n);
}

// Sends an answer to each sender that waits for one and whose transfer is complete.
void Worker::answer(const Plan &plan) {
  for (const Part &part : plan.receives) {
    In &in = in_[part.place];
    if (!part.answered || in.answered || part.pace.share() == 0 || in.received < part.pace.share())
      continue;
    if (in.connection->answer() != 1)
      fail_peer(*in.connection, errno);
    in.answered = true;
  }
}

void Worker::send_all(const Plan &plan, Nanos elapsed_ns) {
  for (const Part &part : plan.sends)
    if (!out_[part.place].blocked)
      send(part, elapsed_ns);
}

void Worker::send(const Part &part, Nanos elapsed_ns) {
  Out &out = out_[part.place];
  while (const std::uint64_t bytes = part.pace.sendable(elapsed_ns, out.sent, fed(part))) {
    const std::size_t length = std::min<std::uint64_t>(bytes, Connection::kMaxBytes);
    const ssize_t n = out.connection->send(length);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      fail_peer(*out.connection, errno);
    out.sent += static_cast<std::uint64_t>(std::max<ssize_t>(n, 0));
    out.blocked = n < static_cast<ssize_t>(length);
    if (out.blocked)
      return;
  }
}

// Returns how many bytes of a transfer all of its feeders have brought.
std::uint64_t Worker::fed(const Part &part) const {
  std::uint64_t least = part.pace.share();
  for (const std::size_t feeder : part.feeders)
    least = std::min(least, in_[feeder].received);
  return least;
}

bool Worker::all_sent(const Plan &plan) const {
  return std::all_of(plan.sends.begin(), plan.sends.end(),
                     [&](const Part &part) { return out_[part.place].sent >= part.pace.share(); });
}

bool Worker::all_received(const Plan &plan) const {
  return std::all_of(plan.receives.begin(), plan.receives.end(),
                     [&](const Part &part) { return in_[part.place].received >= part.pace.share(); });
}

bool Worker::all_answered(const Plan &plan) const {
  return std::all_of(plan.sends.begin(), plan.sends.end(), [&](const Part &part) {
    return !part.answered || part.pace.share() == 0 || out_[part.place].answers > 0;
  });
}

bool Worker::all_left() const {
  return std::all_of(out_.begin(), out_.end(), [](const Out &out) { return out.connection->has_left(); });
}

bool Worker::all_acknowledged() const {
  return std::all_of(out_.begin(), out_.end(), [](const Out &out) { return out.connection->is_acknowledged(); });
}

void Worker::advise_receivers(const Plan &plan) {
  for (const Part &part : plan.receives)
    in_[part.place].connection->wake_by(part.pace.receive_quantum(in_[part.place].received));
}

void Worker::advise_senders(const Plan &plan) {
  for (const Part &part : plan.sends)
    out_[part.place].connection->limit_unsent(std::max(kMinUnsentBytes, part.pace.demand(kUnsentNs)));
}

void Worker::end() {
  while (!all_acknowledged())
    wait(native::monotonic_ns() + kEndLookNs);
  for (const Out &out : out_)
    record_.flow(options_, *out.connection);
  for (const Out &out : out_)
    out.connection->shut();
  ended_ = true;
  while (!std::all_of(in_.begin(), in_.end(), [](const In &in) { return in.ended; }))
    wait(std::nullopt);
}

void Worker::fail_peer(const Connection &connection, int error) const {
  const Peer &peer = options_.job.workers[connection.peer()];
  const bool closed = error == 0 || error == ECONNRESET || error == EPIPE;
  throw native::Failure("peer " + peer.text() +
                        (closed ? " closed the connection" : std::string(" was lost (") + std::strerror(error) + ")") +
                        (started_ ? " in iteration " + std::to_string(iteration_.number) : " before the start"));
}

} // namespace replay
