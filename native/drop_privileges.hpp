// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

namespace native {

// Gives up what root may do, for ever: the process goes on as nobody, with no capability but those `kept`, and nothing
// that it may start has more. For programs that anybody on the network can talk to, once their ports are bound and
// their priority is set. Of whoever is not root nothing is taken. Throws Failure.
//
// Threads that run already lose what is kept, too; it is the caller's, and of threads that it starts.
void step_down(std::initializer_list<int> kept = {});

} // namespace native
