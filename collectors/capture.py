#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures the headers of this host's packets with tcpdump, into a ring of files, until stdin closes.

Captures at the RDMA device if the interface has one, because RoCE bypasses the kernel; else at the interface. On stdout
come: `{"device", "monotonic_ns"}` once packets are captured; after stdin closed, as one line of JSON, tcpdump's counts
and each file's size; then the files, oldest first, one after another. Nothing is left on the host. Exit status 1:
failed, with the reason on stderr.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MB = 1_000_000
RING_FILES = 8
KERNEL_BUFFER_KIB = 16 * 1024
SETTLE_S = 1.2  # wait before tcpdump ends: it reads packets once a second, and unread ones would be lost uncounted
ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
COUNTS = {
    "captured": r"(\d+) packets? captured",
    "received": r"(\d+) packets? received by filter",
    "dropped_by_kernel": r"(\d+) packets? dropped by kernel",
    "dropped_by_interface": r"(\d+) packets? dropped by interface",
}


class CaptureError(Exception):
    """An error for a failed capture, with the reason in its message."""


def main():
    """Capture until end of file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interface", required=True)
    parser.add_argument("--snap-bytes", type=int, default=128, help="kept of each packet (default: 128)")
    parser.add_argument("--budget-mb", type=int, default=200, help="the oldest packets make room (default: 200)")
    options = parser.parse_args()
    for number in ENDS:
        signal.signal(number, end)
    with tempfile.TemporaryDirectory(prefix="roundabout-capture-") as folder:
        try:
            capture(device_of(options.interface), options.snap_bytes, options.budget_mb, Path(folder))
        except (CaptureError, BrokenPipeError) as error:
            sys.exit("capture: %s" % error)


def end(number, _):
    """Handle a signal: exit with cleanup, which further signals do not interrupt."""
    for each in ENDS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit("capture: ended by %s" % signal.Signals(number).name)


def device_of(interface, sys_root="/sys"):
    """Return the RDMA device of a network interface, or the interface itself."""
    devices = Path(sys_root, "class/net", interface, "device/infiniband")
    return sorted(each.name for each in devices.iterdir())[0] if devices.is_dir() else interface


def capture(device, snap_bytes, budget_mb, folder):
    """Run tcpdump until stdin closes, and write its files to stdout."""
    tcpdump = start_tcpdump(device, snap_bytes, budget_mb, folder)
    try:
        await_start(tcpdump)
        print(json.dumps({"device": device, "monotonic_ns": time.monotonic_ns()}), flush=True)
        sys.stdin.read()
        time.sleep(SETTLE_S)
    finally:
        tcpdump.send_signal(signal.SIGINT)
        said = tcpdump.communicate()[1]
    if tcpdump.returncode != 0:
        raise CaptureError(in_one_line(said))
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    print(json.dumps({**counts(said), "files": [path.stat().st_size for path in files]}), flush=True)
    for path in files:
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.flush()


def start_tcpdump(device, snap_bytes, budget_mb, folder):
    """Start a tcpdump that dies with this process, whose ring of files is within the budget."""
    files = min(RING_FILES, budget_mb)
    command = ["tcpdump", "-i", device, "-n", "-s", str(snap_bytes), "-B", str(KERNEL_BUFFER_KIB)]
    command += ["--time-stamp-precision=nano", "-w", str(folder / "packets.pcap")]
    command += ["-C", str(budget_mb // files), "-W", str(files)]
    if os.geteuid() == 0:
        command += ["-Z", "root"]  # else Debian's becomes a user who may not write here
    try:
        return subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - there is one thread
            start_new_session=True,
        )
    except OSError as error:
        raise CaptureError("cannot run tcpdump: %s" % error.strerror) from None


def die_with_parent():
    """Make the kernel end this process when its parent is gone."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def await_start(tcpdump):
    """Wait until tcpdump captures. Raises CaptureError if it ends first."""
    said = b""
    for line in tcpdump.stderr:
        if b"listening on" in line:
            return
        said += line
    raise CaptureError(in_one_line(said))


def in_one_line(said):
    """Return a program's output as one line, for a message."""
    return " ".join(said.decode(errors="replace").split()) or "tcpdump ended without output"


def counts(said):
    """Return the packet counts in tcpdump's output; a count that is missing is 0."""
    found = {name: re.search(pattern, said.decode(errors="replace")) for name, pattern in COUNTS.items()}
    return {name: int(match.group(1)) if match else 0 for name, match in found.items()}


if __name__ == "__main__":
    main()
