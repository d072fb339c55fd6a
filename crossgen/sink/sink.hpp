// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Takes flows from senders that know the secret, and discards them, until it is told to end.
void run_sink(const SinkOptions &options);

} // namespace crossgen
