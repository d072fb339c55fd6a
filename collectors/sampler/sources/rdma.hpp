// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// Returns the counters and hw_counters of every port of the named RDMA devices, or of all with kAll, read below `sys`.
// Throws native::Failure with the name of a missing device.
std::vector<std::unique_ptr<Group>> find_rdma(const std::string &sys, const std::vector<std::string> &names);

} // namespace sampler
