# SPDX-License-Identifier: Apache-2.0
"""Guards a leased host, over the guarded connection: kills the connection's sshd when the lease expires.

Its argument, and then each line of stdin, is the number of seconds until then. The number is negative if the lease has
expired already. Programs over the connection end with their stdin.
"""

import os
import select
import signal
import sys


def main():
    """Wait until the lease expires, or until stdin ends."""
    left_s = float(sys.argv[1])
    while select.select([0], [], [], max(0, left_s))[0]:
        message = os.read(0, 4096).split()
        if not message:
            return
        left_s = float(message[-1])
    kill_sshd()


def kill_sshd():
    """Kill the nearest sshd above this process."""
    process = os.getppid()
    while process > 1:
        with open("/proc/%d/stat" % process) as stat:
            name, fields = stat.read().split("(", 1)[1].rsplit(")", 1)
        if name.startswith("sshd"):
            os.kill(process, signal.SIGKILL)
            break
        process = int(fields.split()[1])


if __name__ == "__main__":
    main()
