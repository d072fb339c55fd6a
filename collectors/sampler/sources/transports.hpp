// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// Returns the counters, in this network namespace, of every transport that is pinned below `folder` (see
// transports/common/registry.c), as the transport declares them. Values are unknown while the transport has no entry
// for the namespace. Throws native::Failure if the declarations cannot be read from the kernel.
std::vector<std::unique_ptr<Group>> find_transports(const std::string &folder);

} // namespace sampler
