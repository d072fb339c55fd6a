// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Writes the load file that is asked for, and says what it holds.
void run_plan(const PlanOptions &options);

// Prints a load file.
void run_show(const ShowOptions &options);

} // namespace crossgen
