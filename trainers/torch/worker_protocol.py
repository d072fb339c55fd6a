# SPDX-License-Identifier: Apache-2.0
"""The part of trainers/PROTOCOL.md that workers in Python share: events, refused options, the agreed start."""

import json
import sys
import time

DAY_S = 86400


def say(event, **fields):
    """Print an event on standard output, which frameworks' output does not reach."""
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), file=sys.__stdout__, flush=True)


def refuse(job, end="this trainer always trains to its end"):
    """Raise ValueError if the job has options that only `replay` supports. `end` says when the trainer ends."""
    if job["departs_ms"] is not None or "timetable" in job:
        raise ValueError(f"found a departure or a timetable, expected neither: {end}")


def start_of(line):
    """Return the agreed start, ns of the host's monotonic clock, in a line `start MONOTONIC_NS`.

    Raises ValueError for another line, a past instant, and one more than a day ahead.
    """
    word, _, at = line.strip().partition(" ")
    if word != "start" or not at.isdigit():
        raise ValueError(f"found {line.strip()!r} on standard input, expected: start MONOTONIC_NS")
    ahead_s = (int(at) - time.monotonic_ns()) / 1e9
    if not 0 < ahead_s < DAY_S:
        raise ValueError(f"found a start {ahead_s:.3f} s ahead, expected one to come, within a day")
    return int(at)
