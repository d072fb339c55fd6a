// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

namespace native {

// Drops root's rights permanently: the process continues as user nobody, with only the capabilities in `kept`, and so
// do programs that it starts. Programs that accept connections from the network call it once their ports are bound and
// their priority is set. Without root it only forbids that programs gain rights when they are started. Throws Failure.
//
// Call it before any thread starts: the kernel stores these properties for each thread.
void step_down(std::initializer_list<int> kept = {});

// Drops all other capabilities of the calling thread. Throws Failure.
void keep_only(std::initializer_list<int> kept);

} // namespace native
