// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace packets {

// The fate of a packet, as its sender learns it. A trimmed packet reached its receiver without its payload.
enum class PathFeedback { kClean, kMarked, kTrimmed, kLost };

} // namespace packets
