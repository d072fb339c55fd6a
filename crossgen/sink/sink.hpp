// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Accepts flows from senders that have the secret, and discards their bytes, until it is stopped.
void run_sink(const SinkOptions &options);

} // namespace crossgen
