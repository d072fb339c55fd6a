// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Sends a load, and prints what became of it. Throws native::Failure, after that, if a sink was lost.
void run_send(const SendOptions &options);

} // namespace crossgen
