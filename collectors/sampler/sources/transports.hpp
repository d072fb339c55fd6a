// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// The reaction points of this network namespace: the counters of every transport that is pinned below `folder` (see
// transports/common/registry.c), as the transport declares them. They are unknown as long as it has no entry for this
// namespace. Throws native::Failure if the kernel does not tell what they are.
std::vector<std::unique_ptr<Group>> find_transports(const std::string &folder);

} // namespace sampler
