// SPDX-License-Identifier: Apache-2.0
// Kinds of loads, and the published sizes of those that are no web search. README.md has the sources.
#pragma once

#include "crossgen/plan/sizes.hpp"

namespace crossgen {

enum class Kind {
  kConsistent, // flows of drawn sizes, at random instants: Algorithm 1
  kCheckpoint, // a part of a checkpoint, periodically, in equal parts to all destinations at once
  kIncast,     // a storage server's block, at the random instant of a request
  kKvCache,    // the keys and values of a prompt, at a random instant
};

const char *kind_name(Kind kind);

// Returns the bytes of a unit that the kind's source publishes: of a sender's part of a checkpoint, of a block, or of
// a token's keys and values. 0 for kConsistent, which has none.
double published_unit_bytes(Kind kind);

// Returns the sizes of what a sender sends at once. `kind` is not kConsistent.
Sizes unit_sizes(Kind kind, double unit_bytes);

} // namespace crossgen
