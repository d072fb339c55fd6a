// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// The reaction points of this network namespace: the counters of every transport that is pinned below `folder` (see
// transports/registry.c) and whose counters we know. They are unknown as long as the transport has no entry for this
// namespace. Throws native::Failure if they are of another build.
std::vector<std::unique_ptr<Group>> find_transports(const std::string &folder);

} // namespace sampler
