// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// The counters and hw_counters of every port of RDMA devices, below `sys`; kAll: of those found there. Throws
// native::Failure naming a device that is not there.
std::vector<std::unique_ptr<Group>> find_rdma(const std::string &sys, const std::vector<std::string> &names);

} // namespace sampler
