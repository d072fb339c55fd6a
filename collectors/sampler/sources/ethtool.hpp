// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/group.hpp"
#include "native/fd.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sampler {

// Returns the statistics of the driver of `interface` whose names match one of the shell patterns; null if there are
// none.
std::unique_ptr<Group> find_ethtool(const std::string &interface, const std::vector<std::string> &patterns);

} // namespace sampler
