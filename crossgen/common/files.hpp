// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"

namespace crossgen {

// Writes the requested load file, and prints a summary of its content.
void run_plan(const PlanOptions &options);

// Prints a summary of a load file.
void run_show(const ShowOptions &options);

} // namespace crossgen
