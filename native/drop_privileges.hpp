// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

namespace native {

// Drops root's rights permanently: the process continues as user nobody, with only the capabilities in `kept`, and so
// do programs that it starts. Programs that accept connections from the network call it once their ports are bound and
// their priority is set. Without root it does nothing. Throws Failure.
//
// Threads that already run lose the capabilities in `kept` too; only the calling thread, and threads that it starts
// later, have them.
void step_down(std::initializer_list<int> kept = {});

} // namespace native
