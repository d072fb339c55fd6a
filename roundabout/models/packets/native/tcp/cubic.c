// SPDX-License-Identifier: Apache-2.0
// CUBIC (RFC 9438) in its own units, seconds and segments, and HyStart (Ha and Rhee, 2011), where RFC and Linux differ
// as Linux has it (net/ipv4/tcp_cubic.c). Only sums, products, quotients and roots by Newton's steps: results are the
// same on every machine.
#include "algorithm.h"

#define C 0.4
#define BETA 0.7
// Section 4.3. Linux keeps it beyond the window before the last reduction, where the RFC has 1.
#define RENO_ALPHA (3 * (1 - BETA) / (1 + BETA))
#define FIRST_GROWTH (1.0 / 20) // of a window, a round trip and at least, before the first reduction (Linux)
#define PS_PER_S 1e12
#define PS_PER_MS 1000000000
// Linux' own: HyStart works on windows from 16 segments; it looks at trains of ACKs no more than 2 ms apart, and at
// eight samples of a round, of which the shortest must be 4 to 16 ms longer than the shortest of all.
#define HYSTART_LEAST_WINDOW 16
#define HYSTART_GAP_PS (2 * (int64_t)PS_PER_MS)
#define HYSTART_SAMPLES 8
#define HYSTART_LEAST_DELAY_PS (4 * (int64_t)PS_PER_MS)
#define HYSTART_MOST_DELAY_PS (16 * (int64_t)PS_PER_MS)

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
  cubic->hystart.round_least_ps = 0;
  cubic->hystart.samples = 0;
}

static void begin(struct congestion_control *cc, const struct congestion_plan *plan, struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  cubic->epoch_ps = -1;
  cubic->window = view->cwnd;
  cubic->uses_hystart = plan->hystart;
  hystart_begin_round(cubic, view);
}

// The longest that a receiver may hold ACKs of whole bursts, from which trains must be told.
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
    int64_t longest = cubic->hystart.least_ps + hystart_ack_delay(view);
    if (!view->is_paced)
      longest /= 2;
    if (view->now_ps - cubic->hystart.round_ps > longest)
      cubic->hystart.has_found = 1;
  }
  if (!cubic->hystart.round_least_ps || rtt_ps < cubic->hystart.round_least_ps)
    cubic->hystart.round_least_ps = rtt_ps;
  int64_t delay = cubic->hystart.least_ps / 8;
  delay = delay < HYSTART_LEAST_DELAY_PS ? HYSTART_LEAST_DELAY_PS : delay;
  delay = delay > HYSTART_MOST_DELAY_PS ? HYSTART_MOST_DELAY_PS : delay;
  if (cubic->hystart.samples < HYSTART_SAMPLES)
    cubic->hystart.samples++;
  else if (cubic->hystart.round_least_ps > cubic->hystart.least_ps + delay)
    cubic->hystart.has_found = 1;
  if (cubic->hystart.has_found)
    view->ssthresh = view->cwnd;
}

static void on_ack(struct congestion_control *cc, struct tcp_view *view, const struct tcp_ack *ack) {
  struct cubic *cubic = &cc->state.cubic;
  if (ack->rtt_ps <= 0)
    return;
  if (!cubic->hystart.least_ps || ack->rtt_ps < cubic->hystart.least_ps)
    cubic->hystart.least_ps = ack->rtt_ps;
  if (cubic->uses_hystart && !cubic->hystart.has_found && view->cwnd < view->ssthresh &&
      view->cwnd >= HYSTART_LEAST_WINDOW)
    hystart_on_ack(cubic, view, ack->rtt_ps);
}

static void begin_epoch(struct cubic *cubic, const struct tcp_view *view) {
  cubic->epoch_ps = view->now_ps;
  cubic->W_est = cubic->window;
  if (cubic->window < cubic->W_max) {
    cubic->origin = cubic->W_max;
    cubic->K_s = cube_root((cubic->W_max - cubic->window) / C);
  } else {
    cubic->origin = cubic->window;
    cubic->K_s = 0;
  }
}

static double W_cubic(const struct cubic *cubic, int64_t since_ps) {
  const double t = (double)since_ps / PS_PER_S - cubic->K_s;
  return cubic->origin + C * t * t * t;
}

static void increase(struct congestion_control *cc, struct tcp_view *view, uint32_t acked) {
  struct cubic *cubic = &cc->state.cubic;
  if (!is_window_used(view))
    return;
  if (view->cwnd < view->ssthresh)
    acked = slow_start(view, acked);
  if (view->cwnd != (uint32_t)cubic->window) // slow start, recovery or a timeout set it
    cubic->window = view->cwnd;
  if (!acked || view->cwnd < view->ssthresh)
    return;
  if (cubic->epoch_ps < 0)
    begin_epoch(cubic, view);
  const int64_t since_ps = view->now_ps - cubic->epoch_ps;
  const double share = acked / cubic->window;
  cubic->W_est += RENO_ALPHA * share;
  double target =
      W_cubic(cubic, since_ps + cubic->hystart.least_ps); // Linux: the shortest round trip, not the smoothed
  if (cubic->W_max == 0 && target < (1 + FIRST_GROWTH) * cubic->window)
    target = (1 + FIRST_GROWTH) * cubic->window;
  target = target > 1.5 * cubic->window ? 1.5 * cubic->window : target;
  if (target > cubic->window)
    cubic->window += (target - cubic->window) * share;
  cubic->window = cubic->W_est > cubic->window ? cubic->W_est : cubic->window;
  view->cwnd = (uint32_t)cubic->window;
}

static uint32_t ssthresh(struct congestion_control *cc, const struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  const double window = view->cwnd;
  cubic->epoch_ps = -1;
  cubic->W_max = window < cubic->W_max ? window * (1 + BETA) / 2 : window; // fast convergence, section 4.7
  return (uint32_t)(window * BETA);
}

static void on_timeout(struct congestion_control *cc, struct tcp_view *view) {
  struct cubic *cubic = &cc->state.cubic;
  cubic->W_max = 0; // K is 0 in the stage that follows (section 4.8)
  cubic->epoch_ps = -1;
  cubic->hystart.has_found = 0;
  hystart_begin_round(cubic, view);
}

// Time in which nothing was sent is no part of the stage (section 4.2).
static void on_idle(struct congestion_control *cc, struct tcp_view *view, int64_t idle_ps) {
  struct cubic *cubic = &cc->state.cubic;
  if (cubic->epoch_ps < 0)
    return;
  cubic->epoch_ps += idle_ps;
  if (cubic->epoch_ps > view->now_ps)
    cubic->epoch_ps = view->now_ps;
}

const struct algorithm cubic_algorithm = {
    .begin = begin,
    .on_ack = on_ack,
    .increase = increase,
    .ssthresh = ssthresh,
    .on_timeout = on_timeout,
    .on_idle = on_idle,
};
