// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP's parameters and counters, which all its variants share. F and bytes_ratio are those of the interleaving
// thesis, Equation 5.1 and its successor; slope and intercept have the values that it publishes.
#ifndef ROUNDABOUT_MLTCP_H
#define ROUNDABOUT_MLTCP_H

#include "declare.h"

enum mltcp_shape { LINEAR, QUADRATIC, RECIPROCAL, DECREASING };
enum mltcp_acts_on { INCREASE, ADDITIVE, DECREASE };
enum mltcp_count_by { HOST, CGROUP, SOCKET };

struct mltcp_params {
  CHOICE(shape, experiment, linear, "linear quadratic reciprocal decreasing",
         "how F goes from intercept to intercept + slope (decreasing: back, which makes jobs share)");
  PARAMETER(__u32, slope_q24, "2^-24", experiment, 1.75, 0, 100, "F at the end of an iteration less F at its begin");
  PARAMETER(__u32, intercept_q24, "2^-24", experiment, 0.25, 0.01, 100, "F at the begin of an iteration");
  CHOICE(acts_on, experiment, increase, "increase additive decrease",
         "what F scales: every increase, additive ones only (DCQCN's R_AI), or by 1 / F the decrease");
  CHOICE(count_by, experiment, host, "host cgroup socket", "whose sockets are a job, and share one count of bytes");
  PARAMETER(__u64, iteration_bytes, "bytes", experiment, 0, 0, 1e12, "that a job sends in an iteration, 0: learned");
  PARAMETER(__u32, gap_us, "us", experiment, 0, 0, 1e9, "of silence that end an iteration, 0: learned");
  PARAMETER(__u32, learn_q24, "2^-24", experiment, 0.25, 0, 1,
            "weight of the newest iteration in what is learned, 0: all is given");
  RULE(bytes_are_known, "iteration_bytes or learn");
  RULE(gap_is_known, "gap_us or learn");
  RULE(gap_ends_iterations, "gap_us <= compute_us");
};

// Counters of the job that received the last ACK.
struct mltcp_counters {
  COUNTER(__u64, iterations, "events", "iterations that ended");
  COUNTER(__u64, learned_bytes, "bytes", "of an iteration, 0: nothing yet");
  COUNTER(__u64, learned_silence_us, "us", "of an iteration; half of it is the gap that ends one");
  COUNTER(__u64, sent_bytes, "bytes", "so far in this iteration");
  COUNTER(__u32, bytes_ratio_q24, "2^-24", "sent over those of an iteration, 1 at most");
  COUNTER(__u32, aggressiveness_q24, "2^-24", "F");
};

#endif
