// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Sends a load, and prints the results. Throws native::Failure afterwards if a sink was lost.
void run_send(const SendOptions &options);

} // namespace crossgen
