// SPDX-License-Identifier: Apache-2.0
#include "native/drop_privileges.hpp"

#include "native/errors.hpp"

#include <cstdint>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace native {
namespace {

constexpr uid_t kNobody = 65534; // on every Linux
constexpr gid_t kNogroup = 65534;

} // namespace

void keep_only(std::initializer_list<int> kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  for (const int each : kept) {
    sets[CAP_TO_INDEX(each)].permitted |= CAP_TO_MASK(each);
    sets[CAP_TO_INDEX(each)].effective |= CAP_TO_MASK(each);
  }
  if (syscall(SYS_capset, &header, sets) != 0)
    throw system_failure("cannot give up capabilities");
}

void step_down(std::initializer_list<int> kept) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (geteuid() != 0)
    return;
  prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  if (setgroups(0, nullptr) != 0 || setresgid(kNogroup, kNogroup, kNogroup) != 0 ||
      setresuid(kNobody, kNobody, kNobody) != 0)
    throw system_failure("cannot go on as user nobody");
  keep_only(kept);
}

} // namespace native
