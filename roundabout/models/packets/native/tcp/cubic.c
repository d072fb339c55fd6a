// SPDX-License-Identifier: Apache-2.0
// CUBIC (RFC 9438) in its own units, seconds and segments, and HyStart (Ha and Rhee, 2011), where RFC and Linux differ
// as Linux has it (net/ipv4/tcp_cubic.c): windows are whole segments, and grow by one after so many acknowledged ones.
// With few segments that is far from the RFC's curves. Only sums, products, quotients and roots by Newton's steps:
// results are the same on every machine.
#include "algorithm.h"

#define C 0.4
#define BETA (717.0 / 1024) // 0.7, in Linux' rounding
// Eighths of a window of ACKs that add a segment to W_est: 1 / alpha_cubic (section 4.3). Linux keeps alpha_cubic
// beyond the window before the last reduction, where the RFC has 1.
#define RENO_EIGHTHS 15
#define FIRST_ACKS 20   // for a segment, at most, before the first reduction (Linux)
#define FEWEST_ACKS 2   // at any time: a window grows by half of it a round trip at most
#define MAX_WINDOWS 100 // are acknowledged for a segment where W_cubic is no more than the window (Linux)
#define PS_PER_S 1e12
#define PS_PER_MS 1000000000
// Linux' clock, of which W_cubic is a function. It looks anew once a tick at most, and, while the window stays the
// same, only after some ticks, at W_est too.
#define TICK_PS (4 * (int64_t)PS_PER_MS) // CONFIG_HZ is 250
#define HOLD_TICKS 7
// Ticks of two hosts are so far apart: the golden section of a tick, so that no two of some hosts tick together. Where
// all hosts ticked at once, those of one were starved for seconds. Namespaces of one kernel do tick at once.
#define APART_PS (TICK_PS / 1000 * 618)
// Linux' own: HyStart works on windows from 16 segments; it looks at trains of ACKs no more than 2 ms apart, and at
// eight samples of a round, of which the shortest must be 4 to 16 ms longer than the shortest of all.
#define HYSTART_MIN_WINDOW 16
#define HYSTART_GAP_PS (2 * (int64_t)PS_PER_MS)
#define HYSTART_SAMPLES 8
#define HYSTART_MIN_DELAY_PS (4 * (int64_t)PS_PER_MS)
#define HYSTART_MAX_DELAY_PS (16 * (int64_t)PS_PER_MS)

static double cube_root(double x) {
  if (x <= 0)
    return 0;
  double root = x > 1 ? x : 1;
  for (int i = 0; i < 200; i++) {
    const double next = (2 * root + x / (root * root)) / 3;
    if (next >= root) // from above, Newton's steps only fall
      break;
    root = next;
  }
  return root;
}

static void hystart_begin_round(struct cubic *cubic, const struct tcp_view *view) {
  cubic->hystart.round_ps = cubic->hystart.ack_ps = view->now_ps;
  cubic->hystart.end_seq = view->snd_nxt;
  cubic->hystart.round_min_ps = 0;
  cubic->hystart.samples = 0;
}

static void begin(struct congestion_control *cc, const struct congestion_plan *plan, struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  cubic->epoch_tick = -1;
  cubic->uses_hystart = plan->hystart;
  hystart_begin_round(cubic, view);
}

// The longest time for which a receiver may delay the ACKs of a burst. Trains must differ from such bursts.
static int64_t hystart_ack_delay(const struct tcp_view *view) {
  const double rate = 2.0 * view->cwnd * view->mss_bytes / (double)view->srtt_ps;
  const double held = 4.0 * view->tso_bytes / rate;
  return held < PS_PER_MS ? (int64_t)held : PS_PER_MS;
}

static void hystart_on_ack(struct cubic *cubic, struct tcp_view *view, int64_t rtt_ps) {
  if ((int32_t)(view->snd_una - cubic->hystart.end_seq) > 0)
    hystart_begin_round(cubic, view);
  if (view->now_ps - cubic->hystart.ack_ps <= HYSTART_GAP_PS) {
    cubic->hystart.ack_ps = view->now_ps;
    int64_t longest = cubic->hystart.min_ps + hystart_ack_delay(view);
    if (!view->is_paced)
      longest /= 2;
    if (view->now_ps - cubic->hystart.round_ps > longest)
      cubic->hystart.has_found = 1;
  }
  if (!cubic->hystart.round_min_ps || rtt_ps < cubic->hystart.round_min_ps)
    cubic->hystart.round_min_ps = rtt_ps;
  int64_t delay = cubic->hystart.min_ps / 8;
  delay = delay < HYSTART_MIN_DELAY_PS ? HYSTART_MIN_DELAY_PS : delay;
  delay = delay > HYSTART_MAX_DELAY_PS ? HYSTART_MAX_DELAY_PS : delay;
  if (cubic->hystart.samples < HYSTART_SAMPLES)
    cubic->hystart.samples++;
  else if (cubic->hystart.round_min_ps > cubic->hystart.min_ps + delay)
    cubic->hystart.has_found = 1;
  if (cubic->hystart.has_found)
    view->ssthresh = view->cwnd;
}

static void on_ack(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack) {
  struct cubic *cubic = &cc->state.cubic;
  if (ack->rtt_ps <= 0)
    return;
  if (!cubic->hystart.min_ps || ack->rtt_ps < cubic->hystart.min_ps)
    cubic->hystart.min_ps = ack->rtt_ps;
  if (cubic->uses_hystart && !cubic->hystart.has_found && view->cwnd < view->ssthresh &&
      view->cwnd >= HYSTART_MIN_WINDOW)
    hystart_on_ack(cubic, view, ack->rtt_ps);
}

static void begin_epoch(struct cubic *cubic, uint32_t cwnd, uint32_t acked, int64_t tick) {
  cubic->epoch_tick = tick;
  cubic->acked = acked;
  cubic->W_est = cwnd;
  if (cubic->W_max <= cwnd) {
    cubic->origin = cwnd;
    cubic->K_s = 0;
  } else {
    cubic->origin = cubic->W_max;
    cubic->K_s = cube_root((cubic->W_max - cwnd) / C);
  }
}

// A round trip from now; by Linux the shortest one, and not the smoothed.
static uint32_t W_cubic(const struct cubic *cubic, int64_t tick) {
  const int64_t round_trip = (cubic->hystart.min_ps + TICK_PS - 1) / TICK_PS;
  const double t = (double)(tick - cubic->epoch_tick + round_trip) * (TICK_PS / PS_PER_S) - cubic->K_s;
  const uint32_t apart = (uint32_t)(C * t * t * (t < 0 ? -t : t));
  return t < 0 ? cubic->origin - apart : cubic->origin + apart;
}

static void follow_cubic(struct cubic *cubic, uint32_t cwnd, int64_t tick) {
  const uint32_t target = W_cubic(cubic, tick);
  cubic->acks_per_segment = target > cwnd ? cwnd / (target - cwnd) : MAX_WINDOWS * cwnd;
  if (cubic->W_max == 0 && cubic->acks_per_segment > FIRST_ACKS)
    cubic->acks_per_segment = FIRST_ACKS;
}

static void follow_reno(struct cubic *cubic, uint32_t cwnd) {
  const uint32_t acks = cwnd * RENO_EIGHTHS / 8;
  while (cubic->acked > acks) {
    cubic->acked -= acks;
    cubic->W_est++;
  }
  if (cubic->W_est > cwnd && cubic->acks_per_segment > cwnd / (cubic->W_est - cwnd))
    cubic->acks_per_segment = cwnd / (cubic->W_est - cwnd);
}

static int64_t tick_of(const struct tcp_view *view) {
  return (view->now_ps + view->host * APART_PS % TICK_PS) / TICK_PS;
}

// How many segments must be acknowledged for one more in the window.
static void update(struct cubic *cubic, const struct tcp_view *view, uint32_t acked) {
  const int64_t tick = tick_of(view);
  cubic->acked += acked;
  if (cubic->last_window == view->cwnd && tick - cubic->last_tick <= HOLD_TICKS)
    return;
  if (cubic->epoch_tick < 0 || tick != cubic->last_tick) {
    cubic->last_window = view->cwnd;
    cubic->last_tick = tick;
    if (cubic->epoch_tick < 0)
      begin_epoch(cubic, view->cwnd, acked, tick);
    follow_cubic(cubic, view->cwnd, tick);
  }
  follow_reno(cubic, view->cwnd);
  if (cubic->acks_per_segment < FEWEST_ACKS)
    cubic->acks_per_segment = FEWEST_ACKS;
}

static void increase(struct congestion_control *cc, struct tcp_view *view, uint32_t acked) {
  struct cubic *cubic = &cc->state.cubic;
  if (!is_window_used(view))
    return;
  acked = slow_start(view, acked);
  if (!acked)
    return;
  update(cubic, view, acked);
  grow(view, &cubic->credit, cubic->acks_per_segment, acked);
}

static uint32_t ssthresh(struct congestion_control *cc, const struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  const uint32_t cwnd = view->cwnd;
  cubic->epoch_tick = -1;
  cubic->credit = 0;
  cubic->W_max = cwnd < cubic->W_max ? (uint32_t)(cwnd * (1 + BETA) / 2) : cwnd; // fast convergence, section 4.7
  return (uint32_t)(cwnd * BETA);
}

static void on_timeout(struct congestion_control *cc, struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  cubic->W_max = cubic->last_window = 0; // K is 0 in the stage that follows (section 4.8)
  cubic->last_tick = 0;
  cubic->hystart.has_found = 0;
  cubic->hystart.min_ps = 0;
  hystart_begin_round(cubic, view);
}

// Time in which nothing was sent is no part of the stage (section 4.2).
static void on_idle(struct congestion_control *cc, struct tcp_view *view, int64_t idle_ps) {
  struct cubic *cubic = &cc->state.cubic;
  if (cubic->epoch_tick < 0)
    return;
  cubic->epoch_tick += idle_ps / TICK_PS;
  if (cubic->epoch_tick > tick_of(view))
    cubic->epoch_tick = tick_of(view);
}

const struct algorithm cubic_algorithm = {
    .begin = begin,
    .on_ack = on_ack,
    .increase = increase,
    .ssthresh = ssthresh,
    .on_timeout = on_timeout,
    .on_idle = on_idle,
};
