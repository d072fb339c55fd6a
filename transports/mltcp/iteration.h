// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where in its iteration a job is, by the bytes that were acknowledged: MLTCP's bytes_ratio (interleaving thesis,
// chapter 5). A silence as long as the gap ends an iteration; a job's bytes and its gap are given, or learned.
//
// The gap is learned as half of the job's silences, since a job is silent for longest while it computes. A silence more
// than twice as long as those known shows, when one of its octave comes again, that they were within an iteration: what
// was learned of them is forgotten. One alone is a pause in training. A silence that was believed and does not come
// again for PATIENCE times its length is forgotten by halves, unless the job has sent no more than twice an iteration's
// bytes: some before training began, say.
#ifndef ROUNDABOUT_MLTCP_ITERATION_H
#define ROUNDABOUT_MLTCP_ITERATION_H

#include "mltcp.h"

#define MOST_BYTES 1000000000000ull // of an iteration, also of one that never ends
// A guess: shorter silences are between a window's bursts. It matters until a job's first longer silence.
#define LEAST_GAP_US 1000
// A guess: jobs that send for four times as long as they compute have no room to interleave in.
#define PATIENCE 4
#define OCTAVES 32

struct iteration {
  __u64 sent;
  __u64 learned_bytes; // 0: none yet
  __u64 silence_us;    // 0: none yet
  __u64 heard_us;      // 0: never
  __u64 forget_us;     // when the silence was awaited for long enough
  __u64 ended;
  __u64 seen_us[OCTAVES]; // when a silence of so many us, as a power of two, ended; 0: never
  __u32 whole;            // whether all of this iteration was counted
};

static __always_inline __u64 iteration_gap_us(const struct iteration *it, const struct mltcp_params *p) {
  if (p->gap_us)
    return p->gap_us;
  return it->silence_us / 2 > LEAST_GAP_US ? it->silence_us / 2 : LEAST_GAP_US;
}

static __always_inline __u64 iteration_average(__u64 known, __u64 newest, __u32 weight_q24) {
  if (!known)
    return weight_q24 ? newest : 0;
  return newest > known ? known + times_q24(newest - known, weight_q24) : known - times_q24(known - newest, weight_q24);
}

// Bytes of an iteration as given, else as learned; 0 if neither is.
static __always_inline __u64 iteration_bytes(const struct iteration *it, const struct mltcp_params *p) {
  return p->iteration_bytes ? p->iteration_bytes : it->learned_bytes;
}

// The logarithm of a time to base 2, rounded down; the last one stands for all that is longer.
static __always_inline __u32 iteration_octave(__u64 us) {
  __u32 octave = 0, left = us >> OCTAVES ? ~0u : (__u32)us;
  for (__u32 step = OCTAVES / 2; step; step /= 2)
    if (left >> step) {
      octave += step;
      left >>= step;
    }
  return octave;
}

// Whether a silence is not the first one of its octave lately.
static __always_inline bool iteration_hears_again(struct iteration *it, __u64 now_us, __u64 silence_us) {
  __u64 *seen_us = &it->seen_us[iteration_octave(silence_us) % OCTAVES], before_us = *seen_us;
  *seen_us = now_us;
  return before_us && now_us - before_us < 2 * PATIENCE * silence_us;
}

static __always_inline void iteration_end(struct iteration *it, const struct mltcp_params *p, __u64 now_us,
                                          __u64 silence_us) {
  bool longer = silence_us / 2 > it->silence_us;
  bool misled = iteration_hears_again(it, now_us, silence_us) && longer;
  if (misled && !p->gap_us)
    it->learned_bytes = 0;
  else if (it->whole)
    it->learned_bytes = iteration_average(it->learned_bytes, it->sent, p->learn_q24);
  if (misled)
    it->silence_us = silence_us;
  else if (!longer)
    it->silence_us = iteration_average(it->silence_us, silence_us, p->learn_q24);
  it->ended++;
  it->sent = 0;
  it->whole = 1;
}

static __always_inline void iteration_forget(struct iteration *it) {
  it->silence_us /= 2;
  it->learned_bytes = 0;
  it->whole = 0;
}

// `bytes` were acknowledged at `now_us`. Several sockets' clocks may be some us apart: time does not run backwards.
static __always_inline void iteration_on_ack(struct iteration *it, const struct mltcp_params *p, __u64 now_us,
                                             __u64 bytes) {
  __u64 silence_us = it->heard_us && now_us > it->heard_us ? now_us - it->heard_us : 0;
  bool ends = silence_us >= iteration_gap_us(it, p);
  bool missed = !p->gap_us && now_us >= it->forget_us && it->sent / 2 >= iteration_bytes(it, p);
  if (now_us > it->heard_us)
    it->heard_us = now_us;
  if (ends)
    iteration_end(it, p, now_us, silence_us);
  else if (missed)
    iteration_forget(it);
  if (ends || missed)
    it->forget_us = now_us + PATIENCE * it->silence_us;
  it->sent = it->sent + bytes < MOST_BYTES ? it->sent + bytes : MOST_BYTES;
}

// min(1, sent / bytes of an iteration).
static __always_inline __u32 iteration_ratio_q24(const struct iteration *it, const struct mltcp_params *p) {
  __u64 whole = iteration_bytes(it, p);
  return it->sent < whole ? share_q24(it->sent, whole) : ONE_Q24;
}

#endif
