// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A job's progress in its iteration by acknowledged bytes: MLTCP's bytes_ratio (interleaving thesis, chapter 5). A
// silence of at least the gap ends an iteration. The bytes of an iteration and the gap are given or learned.
//
// The gap is learned as half of the job's silences, because a job is silent for longest while it computes. A silence
// that is more than twice as long as the learned one, and comes again within its octave, shows that the learned
// silences were within an iteration, and resets what was learned. A single long silence is a pause in training.
// A learned silence that does not come again for PATIENCE times its length is halved, once the job has sent more than
// twice an iteration's bytes; it may be from before training began.
#ifndef ROUNDABOUT_MLTCP_ITERATION_H
#define ROUNDABOUT_MLTCP_ITERATION_H

#include "mltcp_params.h"

#define MAX_BYTES 1000000000000ull // largest count of an iteration's bytes, also if it never ends
// A guess: shorter silences occur between a window's bursts. The value matters until a job's first longer silence.
#define MIN_GAP_US 1000
// A guess: jobs that send for four times as long as they compute have no room to interleave.
#define PATIENCE 4
#define OCTAVES 32

struct iteration {
  __u64 sent;
  __u64 learned_bytes; // 0: none yet
  __u64 silence_us;    // 0: none yet
  __u64 last_ack_us;   // 0: never
  __u64 forget_us;     // when to halve the learned silence
  __u64 ended;
  __u64 seen_us[OCTAVES]; // when a silence of each octave (power of two, us) last ended; 0: never
  __u32 whole;            // 1 if this iteration was counted from its begin
};

// Returns the silence that ends an iteration, us, as given or learned.
static __always_inline __u64 iteration_gap_us(const struct iteration *it, const struct mltcp_params *p) {
  if (p->gap_us)
    return p->gap_us;
  return it->silence_us / 2 > MIN_GAP_US ? it->silence_us / 2 : MIN_GAP_US;
}

// Returns the average of the stored value and the newest, with the given weight of the newest.
static __always_inline __u64 iteration_average(__u64 known, __u64 newest, __u32 weight_q24) {
  if (!known)
    return weight_q24 ? newest : 0;
  return newest > known ? known + times_q24(newest - known, weight_q24) : known - times_q24(known - newest, weight_q24);
}

// Returns the bytes of an iteration as given, else as learned; 0 if neither is known.
static __always_inline __u64 iteration_bytes(const struct iteration *it, const struct mltcp_params *p) {
  return p->iteration_bytes ? p->iteration_bytes : it->learned_bytes;
}

// Returns the logarithm of a time to base 2, rounded down; the last octave includes all longer times.
static __always_inline __u32 iteration_octave(__u64 us) {
  __u32 octave = 0, left = us >> OCTAVES ? ~0u : (__u32)us;
  for (__u32 step = OCTAVES / 2; step; step /= 2)
    if (left >> step) {
      octave += step;
      left >>= step;
    }
  return octave;
}

// Records a silence. Returns true if one of the same octave came recently.
static __always_inline bool iteration_repeats_silence(struct iteration *it, __u64 now_us, __u64 silence_us) {
  __u64 *seen_us = &it->seen_us[iteration_octave(silence_us) % OCTAVES], before_us = *seen_us;
  *seen_us = now_us;
  return before_us && now_us - before_us < 2 * PATIENCE * silence_us;
}

// Ends an iteration after a silence, and learns its bytes and the silence.
static __always_inline void iteration_end(struct iteration *it, const struct mltcp_params *p, __u64 now_us,
                                          __u64 silence_us) {
  bool longer = silence_us / 2 > it->silence_us;
  bool misled = iteration_repeats_silence(it, now_us, silence_us) && longer;
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

// Halves the learned silence, and forgets the learned bytes.
static __always_inline void iteration_forget(struct iteration *it) {
  it->silence_us /= 2;
  it->learned_bytes = 0;
  it->whole = 0;
}

// Counts `bytes` acknowledged at `now_us`. Earlier times than the last are ignored, because sockets' clocks may differ
// by some us.
static __always_inline void iteration_on_ack(struct iteration *it, const struct mltcp_params *p, __u64 now_us,
                                             __u64 bytes) {
  __u64 silence_us = it->last_ack_us && now_us > it->last_ack_us ? now_us - it->last_ack_us : 0;
  bool ends = silence_us >= iteration_gap_us(it, p);
  bool missed = !p->gap_us && now_us >= it->forget_us && it->sent / 2 >= iteration_bytes(it, p);
  if (now_us > it->last_ack_us)
    it->last_ack_us = now_us;
  if (ends)
    iteration_end(it, p, now_us, silence_us);
  else if (missed)
    iteration_forget(it);
  if (ends || missed)
    it->forget_us = now_us + PATIENCE * it->silence_us;
  it->sent = it->sent + bytes < MAX_BYTES ? it->sent + bytes : MAX_BYTES;
}

// Returns bytes_ratio: min(1, sent bytes / bytes of an iteration).
static __always_inline __u32 iteration_ratio_q24(const struct iteration *it, const struct mltcp_params *p) {
  __u64 whole = iteration_bytes(it, p);
  return it->sent < whole ? share_q24(it->sent, whole) : ONE_Q24;
}

#endif
