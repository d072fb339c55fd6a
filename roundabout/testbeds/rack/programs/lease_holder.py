# SPDX-License-Identifier: Apache-2.0
"""Holds leases on the lease host, as locks on files.

Arguments: folder, owner, seconds without a message after which it ends, and names of leases. It answers each message.
"""

import fcntl
import json
import os
import select
import sys
import time


def main():
    """Hold the leases until the owner is silent."""
    folder, owner, silence_s, *names = sys.argv[1:]
    since = format_utc()
    held = [lock_lease(folder, name) for name in sorted(names)]
    last = []
    while True:
        for handle in held:
            content = json.dumps({"owner": owner, "since_utc": since, "last_message_utc": format_utc()}).encode()
            os.pwrite(handle, content, 0)
            os.ftruncate(handle, len(content))
        print("held", *last, flush=True)
        message = os.read(0, 4096) if select.select([0], [], [], float(silence_s))[0] else b""
        if not message:
            break
        last = message.decode().split()[-1:]
    for handle in held:
        os.ftruncate(handle, 0)


def lock_lease(folder, name):
    """Return the locked file of a lease. End this program if another owner holds it."""
    os.umask(0o077)
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o700)
    handle = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("busy " + name + " " + os.read(handle, 4096).decode(errors="replace"), flush=True)
        sys.exit(0)
    return handle


def format_utc():
    """Return this instant as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    main()
