// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/kinds.hpp"

namespace crossgen {
namespace {

// A GPU's part of a checkpoint of Llama 3 405B, split evenly over 16,384 GPUs: weights of 2 bytes, and a copy and two
// moments of Adam's of 4 bytes each. Grattafiori et al. 2024, section 3.3.1: "1 MB to 4 GB per GPU".
constexpr double kCheckpointBytes = 405e9 * 14 / 16'384;

// The chunk of a file in the setup guide of the Fire-Flyer File System (3FS).
constexpr double kBlockBytes = 1 << 20;

// Keys and values of Llama 3 70B that one of eight GPUs has of a token, with tensor parallelism: 80 layers, one of
// eight heads, 128 numbers of 2 bytes.
constexpr double kTokenBytes = 2 * 80 * 1 * 128 * 2;

} // namespace

const char *kind_name(Kind kind) {
  switch (kind) {
  case Kind::kCheckpoint:
    return "checkpoint";
  case Kind::kIncast:
    return "incast";
  case Kind::kKvCache:
    return "kv-cache";
  default:
    return "consistent";
  }
}

double published_unit_bytes(Kind kind) {
  switch (kind) {
  case Kind::kCheckpoint:
    return kCheckpointBytes;
  case Kind::kIncast:
    return kBlockBytes;
  case Kind::kKvCache:
    return kTokenBytes;
  default:
    return 0;
  }
}

Sizes unit_sizes(Kind kind, double unit_bytes) {
  return (kind == Kind::kKvCache ? Sizes::prompt_tokens() : Sizes::one(1)).scaled(unit_bytes);
}

} // namespace crossgen
