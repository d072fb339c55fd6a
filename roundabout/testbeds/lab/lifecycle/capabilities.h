// SPDX-License-Identifier: Apache-2.0
// The privileges that a lab host lacks: modules, raw devices, the machine's clock and its power.
#pragma once

#include <linux/capability.h>
#include <stddef.h>
#include <sys/prctl.h>

// Drops them from the bounding set, so that no program of the host gets them back. Returns 0, or -1 with errno.
static int drop_unneeded_capabilities(void) {
  static const int unneeded[] = {CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_TIME,     CAP_SYS_BOOT,
                                 CAP_MKNOD,      CAP_SYSLOG,    CAP_MAC_OVERRIDE, CAP_MAC_ADMIN};

  for (size_t i = 0; i < sizeof(unneeded) / sizeof(*unneeded); i++)
    if (prctl(PR_CAPBSET_DROP, unneeded[i], 0, 0, 0))
      return -1;
  return 0;
}
