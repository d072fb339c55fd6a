#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures the headers of this host's packets with tcpdump, into a ring of files, until stdin closes.

Captures at the RDMA device if the interface has one, because RoCE bypasses the kernel. Captures at the interface if it
has none, or if tcpdump cannot start there: then RoCE is not in the capture. On stdout come: `{"device", "rdma_error",
"monotonic_ns"}` once packets are captured, with the reason of the latter case or null; after stdin closed, as one line
of JSON, tcpdump's counts (null: unknown) and each file's size; then the files, oldest first, one after another. Nothing
is left on the host. Exit status 1: failed, with the reason on stderr.

Sources: libpcap's pcap-rdmasniff.c (an RDMA device has microseconds only, packets get their time stamps when they are
read, and lost packets are not counted); tcpdump.c, info() (a count of packets dropped by the interface is left out if
it is 0).
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
RDMA_DEVICES = "/sys/class/net/{}/device/infiniband"
NANOSECONDS = "--time-stamp-precision=nano"
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
            capture(options.interface, options.snap_bytes, options.budget_mb, Path(folder))
        except (CaptureError, BrokenPipeError) as error:
            sys.exit("capture: %s" % error)


def end(number, _):
    """Handle a signal: exit with cleanup, which further signals do not interrupt."""
    for each in ENDS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit("capture: ended by %s" % signal.Signals(number).name)


def rdma_device_of(interface):
    """Return the RDMA device of a network interface, or None."""
    devices = Path(RDMA_DEVICES.format(interface))
    return sorted(each.name for each in devices.iterdir())[0] if devices.is_dir() else None


def capture(interface, snap_bytes, budget_mb, folder):
    """Run tcpdump until stdin closes, and write its files to stdout."""
    tcpdump, device, rdma_error = start_anywhere(interface, snap_bytes, budget_mb, folder)
    try:
        began = {"device": device, "rdma_error": rdma_error, "monotonic_ns": time.monotonic_ns()}
        print(json.dumps(began), flush=True)
        sys.stdin.read()
        time.sleep(SETTLE_S)
    finally:
        tcpdump.send_signal(signal.SIGINT)
        said = tcpdump.communicate()[1]
    if tcpdump.returncode != 0:
        raise CaptureError(in_one_line(said))
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    sizes = [path.stat().st_size for path in files]
    print(json.dumps({**counts(said, device != interface), "files": sizes}), flush=True)
    for path in files:
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.flush()


def start_anywhere(interface, *limits):
    """Start a tcpdump at the RDMA device of `interface`, or else at the interface.

    Return it, where it captures, and the error of an RDMA device that cannot be captured, or None. Raises CaptureError.
    """
    rdma_device, rdma_error = rdma_device_of(interface), None
    if rdma_device:
        try:
            return start_tcpdump(rdma_device, [], *limits), rdma_device, None
        except CaptureError as error:
            rdma_error = str(error)
    return start_tcpdump(interface, [NANOSECONDS], *limits), interface, rdma_error


def start_tcpdump(device, options, snap_bytes, budget_mb, folder):
    """Start a tcpdump that dies with this process, whose ring of files is within the budget.

    Raises CaptureError unless it captures.
    """
    files = min(RING_FILES, budget_mb)
    command = ["tcpdump", "-i", device, "-n", "-s", str(snap_bytes), "-B", str(KERNEL_BUFFER_KIB)]
    command += [*options, "-w", str(folder / "packets.pcap")]
    command += ["-C", str(budget_mb // files), "-W", str(files)]
    if os.geteuid() == 0:
        command += ["-Z", "root"]  # else Debian's becomes a user who may not write here
    try:
        tcpdump = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - there is one thread
            start_new_session=True,
        )
    except OSError as error:
        raise CaptureError("cannot run tcpdump: %s" % error.strerror) from None
    try:
        await_start(tcpdump)
    except BaseException:
        tcpdump.kill()
        tcpdump.communicate()
        raise
    return tcpdump


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


def counts(said, is_rdma):
    """Return the packet counts in tcpdump's output. None is unknown: tcpdump reports 0 losses of any RDMA device."""
    found = {name: re.search(pattern, said.decode(errors="replace")) for name, pattern in COUNTS.items()}
    numbers = {name: int(match.group(1)) if match else None for name, match in found.items()}
    if is_rdma:
        return {**numbers, "dropped_by_kernel": None, "dropped_by_interface": None}
    if numbers["dropped_by_kernel"] is not None and numbers["dropped_by_interface"] is None:
        numbers["dropped_by_interface"] = 0
    return numbers


if __name__ == "__main__":
    main()
