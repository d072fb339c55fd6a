# SPDX-License-Identifier: Apache-2.0
"""A fake trainer: it speaks the protocol of trainers, sleeps in place of computing, and sends nothing."""

import json
import os
import sys
import threading
import time

from fake_host import fault, option, say


def end_with_stdin():
    sys.stdin.read()
    os._exit(3)


def wait_for_start():
    """Return the instant at which the job starts, ns of the host's monotonic clock."""
    sys.stdin.readline()  # the secret
    line = sys.stdin.readline()
    if not line:
        sys.exit(3)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    return int(line.split()[1])


if fault("never_ready"):
    time.sleep(60)
say(event="ready")
start, pace = wait_for_start(), fault("iteration_ms") or 4
missing, lost, late_ms = fault("missing_iterations") or 0, fault("lost"), fault("late_ms") or 0.1
hangs = fault("hangs")
while time.monotonic_ns() < start:
    time.sleep(0.0005)
job = json.loads(option("job"))
iterations = job["iterations"]
for number in range(iterations - missing):
    begin = time.monotonic_ns() if number else start  # whenever a busy machine wakes it
    time.sleep(pace / 1e3)
    if lost and number == 1:
        sys.exit(99)
    if hangs and number == 1:
        time.sleep(60)
    if fault("peer"):
        say(event="error", message="peer s2 (10.0.0.3) closed the connection in iteration 1")
        sys.exit(1)
    end = time.monotonic_ns()
    instants = {"start_ns": begin, "compute_end_ns": (begin + end) // 2, "comm_end_ns": end}
    sizes = {"sent_bytes": 1000, "received_bytes": 1000}
    say(event="iteration", iteration=number, **instants, **sizes, late_ns=int(late_ms * 1e6))
connection = {"flow": 0, "peer": "x", "peer_rank": 1, "local_port": 1, "remote_port": 2}
counts = {"bytes_acked": 1000 * iterations, "retransmitted": fault("retransmitted") or 0}
marks = {"congestion_control": "rb_dcqcn", "delivered": 10, "delivered_ce": 1}
say(event="flow", job=job["name"], rank=int(option("rank")), **connection, **counts, **marks)
if exports_s := fault("exports_s"):
    say(event="recording")
    time.sleep(exports_s)
    say(event="record", format="kineto", gzip_base64="e30=")
say(event="done", iterations=iterations)
