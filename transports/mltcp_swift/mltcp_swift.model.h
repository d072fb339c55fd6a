// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over Swift, for models alone: F scales `ai`, or by 1 / F the cuts.
#ifndef ROUNDABOUT_MLTCP_SWIFT_MODEL_H
#define ROUNDABOUT_MLTCP_SWIFT_MODEL_H

#include "../mltcp/aggressiveness.h"
#include "../swift/swift.model.h"

#endif
