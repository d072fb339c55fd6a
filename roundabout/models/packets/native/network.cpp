// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/network.hpp"

#include "roundabout/models/packets/native/jobs/jobs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace packets {
namespace {

// A slower flow looks at its timers that often, so that it speeds up when they say so, and not at its next packet.
constexpr Picos kPatience = 20'000'000;

Picos time_of(double bytes, double bytes_per_s) {
  return static_cast<Picos>(std::ceil(bytes * kPsPerSecond / bytes_per_s));
}

// A byte's time in units of 2^-20 ps, rounded up.
std::uint64_t ps_q20_of(double bytes_per_s) {
  return static_cast<std::uint64_t>(std::ceil(kPsPerSecond * (1 << 20) / bytes_per_s));
}

} // namespace

// Data takes its payload's time at the payload rate, and no less than its whole frame's at the line rate, which is more
// for short packets.
Picos Network::time_on_link(const Port &port, const Packet &packet) const {
  if (packet.kind != Kind::kData)
    return port.control_ps;
  const auto frame = static_cast<std::uint64_t>(packet.frame + nic_.around_bytes);
  const std::uint64_t ps_q20 = std::max(packet.payload * port.payload_ps_q20, frame * port.line_ps_q20);
  return static_cast<Picos>((ps_q20 + ((1 << 20) - 1)) >> 20);
}

Network::Network(EventQueue &events, const NicPlan &nic, std::span<const PortPlan> ports, std::size_t hosts)
    : events_(events), nic_(nic), random_(nic.seed), ports_(ports.size()), hosts_(hosts) {
  for (std::size_t i = 0; i < ports.size(); i++) {
    const PortPlan &plan = ports[i];
    Port &port = ports_[i];
    port.is_host = plan.host >= 0;
    port.payload_ps_q20 = ps_q20_of(plan.payload_bytes_per_s);
    port.line_ps_q20 = ps_q20_of(plan.line_bytes_per_s);
    port.control_ps = time_of(static_cast<double>(nic.control_bytes + nic.around_bytes), plan.line_bytes_per_s);
    port.delay = plan.delay;
    port.queue_bytes = plan.queue_bytes;
    port.kmin_bytes = plan.kmin_bytes;
    port.kmax_bytes = plan.kmax_bytes;
    port.pmax = plan.pmax;
    port.marks_on_arrival = plan.marks_on_arrival != 0;
    port.xoff_bytes = plan.xoff_bytes;
    port.xon_bytes = plan.xon_bytes;
    port.buffer_bytes = plan.buffer_bytes;
    port.loss = plan.loss;
    port.drops_early = plan.loss > 0 && !port.is_host;
  }
}

void Network::share_buffer(const BufferPlan &plan, std::span<const std::uint32_t> ports,
                           std::span<const Bytes> headroom) {
  headrooms_.resize(ports_.size());
  for (std::size_t i = 0; i < ports.size(); i++) {
    ports_[ports[i]].buffer = static_cast<std::uint32_t>(buffers_.size());
    headrooms_[ports[i] ^ 1].bytes = headroom[i];
  }
  buffers_.emplace_back(plan);
}

void Network::weigh_queues(std::uint32_t port, std::span<const Bytes> quanta) {
  ports_[port].scheduler = static_cast<std::uint32_t>(schedulers_.size());
  schedulers_.emplace_back(quanta);
}

void Network::use_red(std::uint32_t index, double weight) {
  Port &port = ports_[index];
  const Picos packet_ps =
      static_cast<Picos>((static_cast<std::uint64_t>(nic_.payload_bytes) * port.payload_ps_q20) >> 20);
  port.red = static_cast<std::uint32_t>(reds_.size());
  reds_.push_back({{port.kmin_bytes, port.kmax_bytes, port.pmax, weight, packet_ps}, {}});
  port.pmax = 0; // nothing is marked by the queue as it stands
  port.drops_early = port.marks_on_arrival = true;
}

Network::~Network() {
  for (QueuePair &each : pairs_)
    reaction_destroy(each.reaction_point);
}

std::uint32_t Network::add_mltcp_job(const mltcp_plan &plan) {
  mltcp_jobs_.emplace_back(mltcp_job_create(&plan));
  return static_cast<std::uint32_t>(mltcp_jobs_.size() - 1);
}

void Network::join(std::uint32_t pair, std::uint32_t job) {
  if (pairs_[pair].tcp != kNone)
    tcp_.join(pairs_[pair].tcp, mltcp_jobs_[job].get());
  else if (pairs_[pair].reaction_point)
    reaction_join(pairs_[pair].reaction_point, mltcp_jobs_[job].get());
}

std::uint32_t Network::add_pair(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back, int priority,
                                std::uint32_t from_host, std::uint32_t to_host, const reaction_plan *plan) {
  QueuePair pair;
  if (!out.empty()) {
    pair.out = add_route(out, from_host);
    pair.back = add_route(back, to_host);
  }
  pair.priority = static_cast<std::uint8_t>(priority);
  pair.from_host = from_host;
  pair.to_host = to_host;
  if (plan && !out.empty())
    attach(pair, *plan);
  pairs_.push_back(pair);
  return static_cast<std::uint32_t>(pairs_.size() - 1);
}

// Gives a pair between hosts what its NICs keep for it.
void Network::attach(QueuePair &pair, const reaction_plan &plan) {
  pair.reaction_point = reaction_create(&plan);
  pair.cnp_gap = plan.cnp_gap_ps;
  pair.notification_point = notification_point(pair, plan.cnp_scope);
  if (plan.retransmission == SELECTIVE_REPEAT) {
    pair.repeat = static_cast<std::uint32_t>(repeats_.size());
    repeats_.emplace_back();
  }
}

// NICs keep the gap between CNPs for each queue pair, for each host that they tell, or for a port.
std::uint32_t Network::notification_point(const QueuePair &pair, std::uint32_t scope) {
  const auto fresh = static_cast<std::uint32_t>(cnp_at_.size());
  std::uint32_t found = fresh;
  if (scope != CNP_PER_QP) {
    const std::uint32_t told = scope == CNP_PER_HOST ? pair.from_host : kNone;
    std::uint32_t last_hop = pair.out;
    while (route_[last_hop + 1] != kNone)
      last_hop++;
    found = cnp_of_.try_emplace({route_[last_hop], told}, fresh).first->second;
  }
  if (found == fresh)
    cnp_at_.push_back(-kNever / 2);
  return found;
}

std::uint32_t Network::add_connection(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back,
                                      int priority, std::uint32_t from_host, std::uint32_t to_host,
                                      const TcpPlan &plan) {
  const std::uint32_t pair = add_pair(out, back, priority, from_host, to_host, nullptr);
  if (!out.empty())
    pairs_[pair].tcp = tcp_.add(plan, from_host);
  return pair;
}

std::uint32_t Network::add_pair_like(std::uint32_t index, const reaction_plan *plan) {
  const QueuePair &like = pairs_[index];
  QueuePair pair;
  pair.out = like.out;
  pair.back = like.back;
  pair.priority = like.priority;
  pair.from_host = like.from_host;
  pair.to_host = like.to_host;
  if (like.tcp != kNone)
    pair.tcp = tcp_.add(tcp_[like.tcp].plan, pair.from_host);
  else if (like.out != kNone)
    attach(pair, *plan);
  pairs_.push_back(pair);
  const auto added = static_cast<std::uint32_t>(pairs_.size() - 1);
  events_.add_queue_pair(added);
  return added;
}

std::uint32_t Network::add_route(std::span<const std::uint32_t> ports, std::uint32_t host) {
  const auto first = static_cast<std::uint32_t>(route_.size());
  for (const std::uint32_t port : ports) {
    const auto [found, is_new] = marks_of_.try_emplace({port, host}, static_cast<std::uint32_t>(marks_.size()));
    if (is_new)
      marks_.push_back({port, host, 0});
    route_.push_back(port);
    route_marks_.push_back(found->second);
  }
  route_.push_back(kNone);
  route_marks_.push_back(kNone);
  return first;
}

void Network::handle(EventTarget target, Picos now, Jobs &jobs) {
  switch (target.kind()) {
  case EventKind::kArrival:
    arrive(target.index(), now, jobs);
    break;
  case EventKind::kTransmission: {
    Port &port = ports_[target.index()];
    port.is_due = false;
    start(target.index(), now);
    if (!port.is_due) // Otherwise its next transmission has replaced this one.
      events_.cancel(target);
    break;
  }
  case EventKind::kQueuePair:
    due(target.index(), now, jobs);
    break;
  default:
    std::visit([&](const auto &event) { handle_delayed(event, now); }, events_.pop_delayed());
  }
}

// --- ports -----------------------------------------------------------------------------------------------------------

void Network::arrive(std::uint32_t link, Picos now, Jobs &jobs) {
  Port &port = ports_[link];
  const std::uint32_t index = pool_.pop(port.on_link);
  events_.set({EventKind::kArrival, link}, port.on_link.empty() ? kNever : pool_[port.on_link.head].at);
  const std::uint32_t next = route_[++pool_[index].hop];
  if (next == kNone)
    deliver(index, now, jobs);
  else
    enqueue(next, index, now);
}

void Network::enqueue(std::uint32_t index, std::uint32_t which, Picos now) {
  Port &port = ports_[index];
  Packet &packet = pool_[which];
  if (port.drops_early && drops_early(port, packet, now)) {
    port.counters[packet.priority].drops++;
    pool_.give_back(which);
    return;
  }
  if (port.is_idle(packet.priority, now)) { // it waits for nothing, and leaves nothing behind
    send(index, which, now);
    return;
  }
  Queue &queue = port.queues[packet.priority];
  if (!port.is_host && !enter_buffer(port, packet, now)) {
    port.counters[packet.priority].drops++;
    pool_.give_back(which);
    return;
  }
  if (port.marks_on_arrival && packet.kind == Kind::kData && packet.is_ecn &&
      (port.red == kNone ? marks(port, queue.bytes) : reds_[port.red].signals))
    mark(port, packet);
  queue.bytes += packet.frame;
  pool_.append(queue.waiting, which);
  port.ready |= bit(packet.priority);
  wake(index, now);
}

// Something waits at a port: its next packet leaves now or when the port is free.
void Network::wake(std::uint32_t index, Picos now) {
  Port &port = ports_[index];
  if (port.is_due)
    return;
  if (port.free_at <= now) {
    start(index, now);
  } else {
    port.is_due = true;
    events_.set({EventKind::kTransmission, index}, port.free_at);
  }
}

// Returns whether a packet is lost before it could wait: by chance, or as RED's signal if it cannot be marked.
bool Network::drops_early(Port &port, Packet &packet, Picos now) {
  if (port.loss > 0 && packet.kind <= Kind::kAck && random_.uniform() < port.loss)
    return true;
  if (port.red == kNone)
    return false;
  Red &red = reds_[port.red];
  RedQueue &queue = red.queues[packet.priority];
  queue.on_arrival(red.plan, port.queues[packet.priority].bytes, now);
  red.signals = packet.kind == Kind::kData && queue.signals(red.plan, random_);
  if (red.signals && !packet.is_ecn)
    return true;
  if (port.is_idle(packet.priority, now)) { // it leaves at once
    if (red.signals)
      mark(port, packet);
    queue.on_empty(now + time_on_link(port, packet));
  }
  return false;
}

// Returns whether the switch has room for a packet, which is counted for the link by which it came.
bool Network::enter_buffer(Port &port, const Packet &packet, Picos now) {
  if (port.buffer != kNone)
    return enter_shared_buffer(port, packet, now);
  const std::uint32_t link = route_[packet.hop - 1];
  Port &before = ports_[link];
  Bytes &held = before.held[packet.priority];
  if (packet.kind == Kind::kData) {
    const bool has_room =
        (port.queue_bytes < 0 || port.queues[packet.priority].bytes + packet.frame <= port.queue_bytes) &&
        (before.xoff_bytes < 0 || held + packet.frame <= before.buffer_bytes);
    const bool has_no_mark = !packet.is_ecn && marks(port, port.queues[packet.priority].bytes);
    if (!has_room || has_no_mark)
      return false;
    if (before.xoff_bytes >= 0 && held + packet.frame > before.xoff_bytes && !(before.xoff_sent & bit(packet.priority)))
      pause(link, packet.priority, true, now);
  }
  held += packet.frame;
  return true;
}

// The same with dynamic thresholds. In a lossy switch they are those of queues, and a frame beyond is dropped. In a
// lossless one they are those of links: a frame beyond pauses its link and waits in the headroom.
bool Network::enter_shared_buffer(Port &port, const Packet &packet, Picos now) {
  SharedBuffer &buffer = buffers_[port.buffer];
  const std::uint32_t link = route_[packet.hop - 1];
  Port &before = ports_[link];
  const int priority = packet.priority;
  const Bytes queued = port.queues[priority].bytes, frame = packet.frame;
  if (packet.kind == Kind::kData && !packet.is_ecn && marks(port, queued))
    return false;
  if (!buffer.is_lossless()) {
    if (!buffer.admits(queued, frame) || (port.queue_bytes >= 0 && queued + frame > port.queue_bytes))
      return false;
    buffer.take(frame, 0);
  } else {
    Headroom &headroom = headrooms_[link];
    Bytes &used = headroom.used[priority];
    if (buffer.admits(before.held[priority] - used, frame)) {
      buffer.take(frame, 0);
    } else {
      const bool has_room = used + frame <= headroom.bytes;
      // The last frame to leave sends XON, so that without any here there must be no XOFF.
      if (!(before.xoff_sent & bit(priority)) && (has_room || before.held[priority] > 0))
        pause(link, priority, true, now);
      if (!has_room)
        return false;
      used += frame;
      buffer.take(0, frame);
    }
  }
  before.held[priority] += frame;
  return true;
}

// Sends the next packet of a queue that may send, if there is one. The port is free.
void Network::start(std::uint32_t index, Picos now) {
  Port &port = ports_[index];
  const auto may = static_cast<std::uint8_t>(port.ready & ~port.paused);
  if (!may)
    return;
  const std::uint32_t which = take_next(port, port.scheduler == kNone ? highest(may) : choose(port, may), now);
  if (which == kNone) { // a queue pair that has nothing to send any more
    start(index, now);
    return;
  }
  Packet &packet = pool_[which];
  if (!port.is_host) {
    leave_buffer(port, packet, now);
    if (!port.marks_on_arrival && packet.kind == Kind::kData && packet.is_ecn &&
        marks(port, port.queues[packet.priority].bytes))
      mark(port, packet);
  }
  send(index, which, now);
  if (port.ready & ~port.paused) {
    port.is_due = true;
    events_.set({EventKind::kTransmission, index}, port.free_at);
  }
}

// Puts a packet on the link, which is free.
void Network::send(std::uint32_t index, std::uint32_t which, Picos now) {
  Port &port = ports_[index];
  Packet &packet = pool_[which];
  port.free_at = now + time_on_link(port, packet);
  port.tx_bytes += packet.frame;
  port.tx_packets++;
  if (port.counts_queues) {
    port.counters[packet.priority].tx_bytes += packet.frame;
    port.counters[packet.priority].tx_packets++;
  }
  hops_++;
  packet.at = port.free_at + port.delay;
  if (port.on_link.empty())
    events_.set({EventKind::kArrival, index}, packet.at);
  pool_.append(port.on_link, which);
}

int Network::choose(Port &port, std::uint8_t may) {
  return schedulers_[port.scheduler].choose(
      may, [&](int queue) -> Bytes { return pool_[port.queues[queue].waiting.head].frame; });
}

std::uint32_t Network::take_next(Port &port, int priority, Picos now) {
  Queue &queue = port.queues[priority];
  PairList &turn = port.pairs[priority];
  std::uint32_t found = kNone;
  if (!queue.waiting.empty()) {
    found = pool_.pop(queue.waiting);
    queue.bytes -= pool_[found].frame;
    if (queue.waiting.empty() && turn.head == kNone) {
      port.ready &= static_cast<std::uint8_t>(~bit(priority));
      if (port.scheduler != kNone || port.red != kNone)
        queue_is_empty(port, pool_[found], now);
    }
    return found;
  }
  const std::uint32_t pair = turn.head;
  turn.head = pairs_[pair].next_in_turn;
  if (turn.head == kNone)
    port.ready &= static_cast<std::uint8_t>(~bit(priority));
  pairs_[pair].waits_for_turn = false;
  if (pairs_[pair].tcp != kNone)
    return tcp_.emit(pair, now);
  if (!pairs_[pair].stopped && !pairs_[pair].all_sent())
    return emit(pair, now);
  plan(pair, now); // an acknowledgement or a departure came first
  return kNone;
}

// A switch's port has taken the last packet of a queue.
void Network::queue_is_empty(Port &port, const Packet &packet, Picos now) {
  if (port.scheduler != kNone)
    schedulers_[port.scheduler].on_empty(packet.priority);
  if (port.red != kNone)
    reds_[port.red].queues[packet.priority].on_empty(now + time_on_link(port, packet));
}

void Network::leave_buffer(const Port &port, const Packet &packet, Picos now) {
  if (port.buffer != kNone) {
    leave_shared_buffer(port, packet, now);
    return;
  }
  const std::uint32_t link = route_[packet.hop - 1];
  Port &before = ports_[link];
  before.held[packet.priority] -= packet.frame;
  if ((before.xoff_sent & bit(packet.priority)) && before.held[packet.priority] <= before.xon_bytes)
    pause(link, packet.priority, false, now);
}

// What came over a link leaves its headroom first, so that it is free when the link goes on.
void Network::leave_shared_buffer(const Port &port, const Packet &packet, Picos now) {
  SharedBuffer &buffer = buffers_[port.buffer];
  const std::uint32_t link = route_[packet.hop - 1];
  Port &before = ports_[link];
  const int priority = packet.priority;
  Bytes &used = headrooms_[link].used[priority];
  const Bytes from_headroom = std::min<Bytes>(packet.frame, used);
  used -= from_headroom;
  before.held[priority] -= packet.frame;
  buffer.give_back(packet.frame - from_headroom, from_headroom);
  if ((before.xoff_sent & bit(priority)) && used == 0 && before.held[priority] <= buffer.xon())
    pause(link, priority, false, now);
}

// Tells the port that feeds a link to pause, or to go on: the frame comes by the link's other direction, after the
// packet that is being sent there. The two directions of a link are neighbors.
void Network::pause(std::uint32_t link, int priority, bool on, Picos now) {
  const Port &other = ports_[link ^ 1];
  ports_[link].xoff_sent ^= bit(priority);
  events_.delay(std::max(now, other.free_at) + other.control_ps + other.delay,
                PfcEvent{link, static_cast<std::uint8_t>(priority), on});
}

bool Network::marks(const Port &port, Bytes queued) {
  if (port.pmax <= 0 || queued <= port.kmin_bytes)
    return false;
  if (queued > port.kmax_bytes)
    return true;
  const double share = static_cast<double>(queued - port.kmin_bytes) /
                       static_cast<double>(std::max<Bytes>(port.kmax_bytes - port.kmin_bytes, 1));
  return random_.uniform() < port.pmax * share;
}

void Network::mark(Port &port, Packet &packet) {
  packet.marked = true;
  port.counters[packet.priority].marks++;
  marks_[route_marks_[packet.hop]].marks++;
}

Picos Network::paused_since(std::size_t index) const {
  const Port &port = ports_[index];
  Picos first = -1;
  for (int queue = 0; queue < kPriorities; queue++)
    if ((port.paused & bit(queue)) && (first < 0 || port.paused_since[queue] < first))
      first = port.paused_since[queue];
  return first;
}

QueueCounters Network::counters(std::size_t index, Picos now) const {
  QueueCounters sum{ports_[index].tx_bytes, ports_[index].tx_packets};
  for (int queue = 0; queue < kPriorities; queue++) {
    const QueueCounters each = queue_counters(index, queue, now);
    sum.drops += each.drops;
    sum.marks += each.marks;
    sum.pauses += each.pauses;
    sum.paused += each.paused;
  }
  return sum;
}

QueueCounters Network::queue_counters(std::size_t index, int queue, Picos now) const {
  const Port &port = ports_[index];
  QueueCounters found = port.counters[queue];
  if (port.paused & bit(queue))
    found.paused += now - port.paused_since[queue];
  return found;
}

void Network::count_queues() {
  for (Port &port : ports_)
    port.counts_queues = true;
}

double Network::red_average(std::size_t port, int queue) const {
  return ports_[port].red == kNone ? 0 : reds_[ports_[port].red].queues[queue].average();
}

Bytes Network::backlog(std::size_t index) const {
  Bytes sum = 0;
  for (const Queue &queue : ports_[index].queues)
    sum += queue.bytes;
  return sum;
}

// --- queue pairs: the sender -----------------------------------------------------------------------------------------

void Network::post(std::uint32_t index, Bytes begin, Bytes end, Picos length, Picos now) {
  QueuePair &pair = pairs_[index];
  pair.stopped = false;
  pair.acked = pair.next = pair.begin = begin;
  if (pair.repeat != kNone) {
    repeats_[pair.repeat].begin(begin);
    pair.repairs = false;
  }
  pair.end = end;
  pair.posted_at = now;
  pair.ps_per_byte = static_cast<double>(length) / static_cast<double>(end - begin);
  plan(index, now);
}

void Network::stop(std::uint32_t index) {
  pairs_[index].stopped = true;
  if (pairs_[index].tcp != kNone)
    tcp_.stop(index);
  reaction_leave(pairs_[index].reaction_point);
  events_.cancel({EventKind::kQueuePair, index});
}

void Network::open(std::uint32_t index, Bytes end, Picos now) {
  QueuePair &pair = pairs_[index];
  pair.stopped = true; // nothing goes before its opening
  pair.begin = pair.next = pair.acked = pair.expected;
  pair.end = end;
  if (pair.tcp != kNone) {
    tcp_.renew(pair.tcp, pair.begin);
    shake_hands(index);
  } else if (pair.out != kNone) {
    reaction_begin(pair.reaction_point);
    pair.paced_until = 0;
    pair.in_burst = 0;
  }
  events_.cancel({EventKind::kQueuePair, index});
  events_.delay(now + empty_round_trip(pair), HandshakeEvent{index});
}

void Network::shake_hands(std::uint32_t index) {
  if (pairs_[index].tcp != kNone)
    tcp_.note_handshake(pairs_[index].tcp, empty_round_trip(pairs_[index]));
}

Picos Network::empty_round_trip(const QueuePair &pair) const {
  Picos sum = 0;
  for (const std::uint32_t way : {pair.out, pair.back})
    for (std::uint32_t hop = way; hop != kNone && route_[hop] != kNone; hop++)
      sum += ports_[route_[hop]].control_ps + ports_[route_[hop]].delay;
  return sum;
}

// Returns how many bytes of its message a pair may have sent by what its feeders have brought.
Bytes Network::allowed_by_feeders(const QueuePair &pair) const {
  Bytes allowed = pair.end - pair.begin;
  for (const Feeder &each : pair.feeders) {
    const Bytes fed = std::max<Bytes>(pairs_[each.pair].expected - each.begin, 0);
    if (fed < each.bytes)
      allowed = std::min(allowed, pair.lead + fed);
  }
  return allowed;
}

// Schedules what the sender does next, unless it waits for its turn or for a feeder.
void Network::plan(std::uint32_t index, Picos now) {
  QueuePair &pair = pairs_[index];
  if (pair.tcp != kNone) {
    tcp_.wake(index, now);
    return;
  }
  if (pair.waits_for_turn)
    return;
  Picos at = kNever;
  if (pair.stopped) {
    at = kNever;
  } else {
    const Bytes until = std::min(pair.next + nic_.payload_bytes, pair.end) - pair.begin;
    pair.waits_for_lead = false;
    if (!pair.feeders.empty() && !pair.all_sent() && !pair.repairs)
      pair.waits_for_lead = until > allowed_by_feeders(pair);
    if (pair.waits_for_answer()) {
      if (pair.acked < pair.next && pair.out != kNone)
        at = now + nic_.timeout;
    } else {
      const Picos born = pair.posted_at + static_cast<Picos>(static_cast<double>(until) * pair.ps_per_byte);
      at = std::max({now, pair.repairs ? now : born, pair.paced_until});
      if (pair.paced_until > now + kPatience)
        at = std::min(at, now + kPatience);
    }
  }
  events_.set({EventKind::kQueuePair, index}, at);
}

void Network::due(std::uint32_t index, Picos now, Jobs &jobs) {
  QueuePair &pair = pairs_[index];
  if (pair.tcp != kNone) {
    tcp_.fire(index, now);
    return;
  }
  if (pair.out == kNone) { // within a host a packet arrives as it is sent
    const Bytes payload = std::min(nic_.payload_bytes, pair.end - pair.next);
    pair.next += payload;
    plan(index, now);
    advance(index, payload, now, jobs);
    return;
  }
  if (pair.waits_for_answer()) {
    time_out(index, now);
    return;
  }
  if (pair.paced_until > now) {
    limit(pair, reaction_on_send(pair.reaction_point, now, 0));
    plan(index, now);
    return;
  }
  const std::uint32_t nic = route_[pair.out];
  if (ports_[nic].is_idle(pair.priority, now)) {
    send(nic, emit(index, now), now);
    return;
  }
  events_.cancel({EventKind::kQueuePair, index});
  request_turn(index, now);
}

void Network::time_out(std::uint32_t index, Picos now) {
  QueuePair &pair = pairs_[index];
  if (pair.repeat == kNone) {
    pair.resent += (pair.next - pair.acked + nic_.payload_bytes - 1) / nic_.payload_bytes;
    pair.next = pair.acked;
  } else {
    repeats_[pair.repeat].time_out(pair.acked, pair.next);
    pair.repairs = true;
  }
  plan(index, now);
}

Bytes Network::next_seq(QueuePair &pair) {
  if (!pair.repairs) {
    const Bytes seq = pair.next;
    pair.next += std::min(nic_.payload_bytes, pair.end - seq);
    return seq;
  }
  SelectiveRepeat &repeat = repeats_[pair.repeat];
  const Bytes seq = repeat.next_lost(pair.acked);
  repeat.repair = seq + nic_.payload_bytes;
  pair.repairs = repeat.next_lost(pair.acked) < repeat.lost_end;
  pair.resent++;
  return seq;
}

void Network::request_turn(std::uint32_t index, Picos now) {
  rejoin_turn(index);
  wake(route_[pairs_[index].out], now);
}

void Network::rejoin_turn(std::uint32_t index) {
  QueuePair &pair = pairs_[index];
  Port &port = ports_[route_[pair.out]];
  PairList &turn = port.pairs[pair.priority];
  pair.waits_for_turn = true;
  pair.next_in_turn = kNone;
  (turn.head == kNone ? turn.head : pairs_[turn.tail].next_in_turn) = index;
  turn.tail = index;
  port.ready |= bit(pair.priority);
}

void Network::keep_turn(std::uint32_t index) {
  QueuePair &pair = pairs_[index];
  Port &port = ports_[route_[pair.out]];
  PairList &turn = port.pairs[pair.priority];
  pair.waits_for_turn = true;
  pair.next_in_turn = turn.head;
  if (turn.head == kNone)
    turn.tail = index;
  turn.head = index;
  port.ready |= bit(pair.priority);
}

std::uint32_t Network::emit(std::uint32_t index, Picos now) {
  QueuePair &pair = pairs_[index];
  const Bytes seq = next_seq(pair);
  const Bytes payload = std::min(nic_.payload_bytes, pair.end - seq);
  const std::uint32_t which = pool_.take();
  Packet &packet = pool_[which];
  packet.seq = seq;
  packet.pair = index;
  packet.hop = pair.out;
  packet.payload = static_cast<std::uint16_t>(payload);
  packet.frame = static_cast<std::uint16_t>(payload + nic_.header_bytes);
  packet.kind = Kind::kData;
  packet.priority = pair.priority;
  packet.marked = packet.echo = packet.is_duplicate = false;
  packet.is_ecn = true;
  packet.blocks = 0;
  pair.packets++;
  pace(pair, payload, now);
  plan(index, now);
  packet.wants_ack = pair.waits_for_answer() || (seq + payload) / nic_.ack_bytes != seq / nic_.ack_bytes;
  return which;
}

// The hardware rate limiter: a burst, and then a gap that makes its rate R_C.
void Network::pace(QueuePair &pair, Bytes payload, Picos now) {
  const std::uint64_t rate = reaction_on_send(pair.reaction_point, now, static_cast<std::uint64_t>(payload));
  if (pair.in_burst == 0) {
    pair.burst_at = now;
    pair.burst_bytes = 0;
  }
  pair.burst_bytes += payload;
  if (++pair.in_burst < nic_.burst && !pair.all_sent())
    return;
  pair.in_burst = 0;
  if (nic_.pace_jitter > 0)
    pair.gap_spread = nic_.pace_jitter * (random_.uniform() - 0.5);
  limit(pair, rate);
}

// Lets the next burst go when the last one's bytes have left at `rate`, give or take the spread of its gap. A flow at
// R_max has no rate limiter, and so no spread, by which it would fall behind the link.
void Network::limit(QueuePair &pair, std::uint64_t rate) {
  const double spread = reaction_is_limited(pair.reaction_point) ? pair.gap_spread : 0;
  const double gap = static_cast<double>(pair.burst_bytes) * kPsPerSecond / static_cast<double>(rate);
  pair.paced_until = pair.burst_at + static_cast<Picos>(gap * (1 + spread));
}

void Network::hear_cnp(std::uint32_t index, Picos now) {
  QueuePair &pair = pairs_[index];
  hosts_[pair.from_host].cnps_handled++;
  reaction_on_cnp(pair.reaction_point, now);
}

void Network::acknowledge(const Packet &packet, Bytes sack, Picos now, Jobs &jobs) {
  QueuePair &pair = pairs_[packet.pair];
  if (packet.seq < pair.acked || pair.stopped)
    return;
  pair.acked = packet.seq;
  if (pair.repeat != kNone) {
    SelectiveRepeat &repeat = repeats_[pair.repeat];
    if (packet.kind == Kind::kNack)
      repeat.hear(pair.acked, sack, std::min(sack + nic_.payload_bytes, pair.end), pair.next);
    else
      repeat.sacked.erase_below(pair.acked);
    const bool repaired = pair.repairs;
    pair.repairs = repeat.next_lost(pair.acked) < repeat.lost_end;
    if (pair.repairs != repaired || pair.waits_for_answer())
      plan(packet.pair, now);
  } else if (packet.kind == Kind::kNack && packet.seq < pair.next) { // go back
    pair.resent += (pair.next - packet.seq + nic_.payload_bytes - 1) / nic_.payload_bytes;
    pair.next = packet.seq;
    plan(packet.pair, now);
  } else {
    pair.next = std::max(pair.next, pair.acked); // it had gone back too far
    if (pair.waits_for_answer())
      plan(packet.pair, now);
  }
  if (pair.acked >= pair.end && pair.is_done())
    jobs.message_taken(pair, now);
}

// --- queue pairs: the receiver ---------------------------------------------------------------------------------------

void Network::deliver(std::uint32_t which, Picos now, Jobs &jobs) {
  const Packet packet = pool_[which];
  pool_.give_back(which);
  switch (packet.kind) {
  case Kind::kData:
    if (pairs_[packet.pair].tcp != kNone)
      tcp_.take_segment(packet, now, jobs);
    else
      take_data(packet, now, jobs);
    break;
  case Kind::kAck:
  case Kind::kNack:
    if (pairs_[packet.pair].tcp != kNone)
      tcp_.take_ack(packet, which, now, jobs);
    else
      acknowledge(packet, which < sacks_.size() ? sacks_[which] : 0, now, jobs);
    break;
  case Kind::kCnp:
    events_.delay(now + nic_.cnp_delay + static_cast<Picos>(static_cast<double>(nic_.cnp_jitter) * random_.uniform()),
                  CnpEvent{packet.pair});
    break;
  }
}

void Network::take_data(const Packet &packet, Picos now, Jobs &jobs) {
  QueuePair &pair = pairs_[packet.pair];
  pair.delivered++;
  if (packet.marked) { // the notification point
    pair.marked++;
    HostCounters &host = hosts_[pair.to_host];
    host.marked++;
    Picos &cnp_at = cnp_at_[pair.notification_point];
    if (now - cnp_at >= pair.cnp_gap) {
      cnp_at = now;
      host.cnps_sent++;
      answer(packet.pair, Kind::kCnp, now);
    }
  }
  bool filled = false;
  if (packet.seq == pair.expected) {
    pair.nack_sent = false;
    advance(packet.pair, packet.payload, now, jobs);
    if (pair.repeat != kNone && !repeats_[pair.repeat].arrived.empty()) {
      Ranges &arrived = repeats_[pair.repeat].arrived;
      const Bytes end = arrived.skip(pair.expected);
      arrived.erase_below(end);
      advance(packet.pair, end - pair.expected, now, jobs);
      filled = true;
    }
  } else if (packet.seq > pair.expected) {
    hosts_[pair.to_host].out_of_sequence++;
    if (pair.repeat != kNone) {
      keep_out_of_order(packet, now);
      return;
    }
    if (!pair.nack_sent)
      answer(packet.pair, Kind::kNack, now);
    pair.nack_sent = true;
    return;
  }
  if (packet.wants_ack || filled)
    answer(packet.pair, Kind::kAck, now);
}

void Network::keep_out_of_order(const Packet &packet, Picos now) {
  repeats_[pairs_[packet.pair].repeat].arrived.insert(packet.seq, packet.seq + packet.payload);
  const std::uint32_t nack = answer(packet.pair, Kind::kNack, now);
  if (sacks_.size() <= nack)
    sacks_.resize(pool_.size());
  sacks_[nack] = packet.seq;
}

// The next bytes of the stream are there.
void Network::advance(std::uint32_t index, Bytes payload, Picos now, Jobs &jobs) {
  QueuePair &pair = pairs_[index];
  pair.expected += payload;
  for (const std::uint32_t follower : pair.followers)
    if (pairs_[follower].waits_for_lead) {
      pairs_[follower].waits_for_lead = false;
      plan(follower, now);
    }
  if (pair.out == kNone)
    pair.acked = pair.expected;
  if (pair.expected == pair.awaited)
    jobs.message_received(pair, now);
  if (pair.out == kNone && pair.expected == pair.end && pair.is_done())
    jobs.message_taken(pair, now);
}

std::uint32_t Network::answer(std::uint32_t index, Kind kind, Picos now) {
  const QueuePair &pair = pairs_[index];
  const std::uint32_t which = pool_.take();
  Packet &packet = pool_[which];
  packet.seq = pair.expected;
  packet.pair = index;
  packet.hop = pair.back;
  packet.payload = 0;
  packet.frame = static_cast<std::uint16_t>(nic_.control_bytes);
  packet.kind = kind;
  packet.priority = kind == Kind::kCnp ? kCnpPriority : pair.priority;
  packet.marked = packet.wants_ack = packet.is_ecn = packet.echo = packet.is_duplicate = false;
  packet.blocks = 0;
  enqueue(route_[pair.back], which, now);
  return which;
}

// --- delayed events --------------------------------------------------------------------------------------------------

void Network::handle_delayed(const CnpEvent &event, Picos now) { hear_cnp(event.queue_pair, now); }

void Network::handle_delayed(const HandshakeEvent &event, Picos now) {
  const QueuePair &pair = pairs_[event.queue_pair];
  post(event.queue_pair, pair.begin, pair.end, 0, now);
}

void Network::handle_delayed(const PfcEvent &event, Picos now) {
  Port &port = ports_[event.port];
  const std::uint8_t which = bit(event.priority);
  if (event.is_xoff) {
    port.counters[event.priority].pauses++;
    port.paused |= which;
    port.paused_since[event.priority] = now;
    return;
  }
  port.paused &= static_cast<std::uint8_t>(~which);
  port.counters[event.priority].paused += now - port.paused_since[event.priority];
  if (port.ready & which)
    wake(event.port, now);
}

} // namespace packets
