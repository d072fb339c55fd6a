// SPDX-License-Identifier: Apache-2.0
// The privileges that a lab host lacks: modules, raw devices, the machine's clock and its power.
#pragma once

#include <linux/capability.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Drops them from all sets of the process. Without the inheritable set, a program that root starts would get those back
// that a container runtime made inheritable. Returns 0, or -1 with errno.
static int drop_unneeded_capabilities(void) {
  static const int unneeded[] = {CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_TIME,     CAP_SYS_BOOT,
                                 CAP_MKNOD,      CAP_SYSLOG,    CAP_MAC_OVERRIDE, CAP_MAC_ADMIN};
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

  if (syscall(SYS_capget, &header, sets))
    return -1;
  for (size_t i = 0; i < sizeof(unneeded) / sizeof(*unneeded); i++) {
    struct __user_cap_data_struct *set = &sets[CAP_TO_INDEX(unneeded[i])];
    __u32 kept = ~CAP_TO_MASK(unneeded[i]);
    set->effective &= kept;
    set->permitted &= kept;
    set->inheritable &= kept;
    if (prctl(PR_CAPBSET_DROP, unneeded[i], 0, 0, 0))
      return -1;
  }
  return (int)syscall(SYS_capset, &header, sets);
}
