# SPDX-License-Identifier: Apache-2.0
"""The iterations in a program's output: lines that match a pattern, whose named groups are figures with units."""

import math
import os
import re

MIN_BETWEEN_NS = 1_000_000  # of lines without a time of their own; lines of a buffered output come microseconds apart
MAX_LINE_BYTES = 65536  # limit of a line that has not ended; of a longer one the end is kept
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")  # colors, cursor movements, window titles (ECMA-48)
TIMES_NS = {"s": 1e9, "ms": 1e6, "us": 1e3}  # groups with the time of an iteration -> ns of their unit
POSITIVE = frozenset({*TIMES_NS, "mpps"})


class LineSplitter:
    """The complete lines of an output, without terminal control sequences.

    A carriage return also ends a line, because progress bars use it. A line without its end may be cut in the middle of
    a number, so it is no line.
    """

    def __init__(self):
        self._rest = b""

    def split(self, chunk):
        """Return the lines that end in this chunk of bytes. Empty lines are left out."""
        *whole, rest = re.split(b"[\r\n]", self._rest + chunk)
        self._rest = rest[-MAX_LINE_BYTES:]
        lines = (CONTROL.sub("", line.decode(errors="replace")).strip() for line in whole)
        return [line for line in lines if line]

    def rest(self):
        """Return the beginning of the line that has not ended."""
        return CONTROL.sub("", self._rest.decode(errors="replace")).strip()


class FileTail:
    """The bytes that are added to a file from now on. A replaced or shortened file is read from its beginning."""

    def __init__(self, path):
        self._path, self._inode, self._offset = path, None, 0
        if os.path.exists(path):
            status = os.stat(path)
            self._inode, self._offset = status.st_ino, status.st_size

    def read(self):
        """Return the added bytes, b"" if the file does not exist. Raises OSError."""
        try:
            with open(self._path, "rb") as file:
                return self._read(file)
        except FileNotFoundError:
            self._inode = None
            return b""

    def _read(self, file):
        status = os.fstat(file.fileno())
        if status.st_ino != self._inode or status.st_size < self._offset:
            self._inode, self._offset = status.st_ino, 0
        file.seek(self._offset)
        added = file.read()
        self._offset += len(added)
        return added


class IterationParser:
    """The iterations in lines that match `pattern`. The first `skip` of these lines are warm-up.

    A line's groups `s`, `ms` or `us` are the time of an iteration, and `mpps` is millions of iterations in a second.
    Without any of them, an iteration lasts from one line to the next, so the first line only begins one. The group
    `iteration` is the program's number of an iteration: a line whose number is not higher than the one before comes
    from another rank, and one that is higher by n reports n iterations. `GBps` (nccl-tests' GB/s) or `gbps` is the bus
    bandwidth. With `bytes`, it is these bytes in the time of an iteration.
    """

    def __init__(self, pattern, skip=0):
        self._pattern, self._skip = re.compile(pattern), skip
        self._number, self._line_ns = None, None
        self.matched = 0
        """Number of lines that matched, other ranks' included."""
        self.bunched = 0
        """Number of iterations without a time of their own that lasted less than MIN_BETWEEN_NS."""

    def parse(self, line, now_ns):
        """Return the iteration that a line reports at `now_ns` of the host's clock, or None.

        The result has the fields of an event `iteration` (trainers/PROTOCOL.md) without the number. Raises ValueError
        for a figure that is no finite number, or a time that is not positive.
        """
        match = self._pattern.search(line)
        if match is None:
            return None
        self.matched += 1
        found = {name: _number(name, text, line) for name, text in match.groupdict().items() if text is not None}
        number, last, before_ns = found.get("iteration"), self._number, self._line_ns
        if number is not None and last is not None and number <= last:
            return None
        self._number, self._line_ns = number, now_ns
        lasted_ns = _reported_ns(found)
        if lasted_ns is None and before_ns is not None:
            lasted_ns = (now_ns - before_ns) / (1 if last is None else number - last)
            self.bunched += not self._skip and now_ns - before_ns < MIN_BETWEEN_NS
        if self._skip:
            self._skip -= 1
            return None
        return None if lasted_ns is None else _iteration(found, now_ns, lasted_ns)


def _number(name, text, line):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (name in POSITIVE and value <= 0):
        allowed = "a positive number" if name in POSITIVE else "a finite number"
        raise ValueError("{!r} for {} in the line {!r}, allowed is {}".format(text, name, line, allowed))
    return value


def _reported_ns(found):
    """Return the time of an iteration that a line reports, in ns, or None."""
    if "mpps" in found:
        return 1e3 / found["mpps"]
    return next((found[name] * unit_ns for name, unit_ns in TIMES_NS.items() if name in found), None)


def _iteration(found, now_ns, lasted_ns):
    """Return an iteration of which nothing but its time is known, so that all of it counts as communication."""
    start_ns = now_ns - max(1, round(lasted_ns))
    event = {"start_ns": start_ns, "compute_end_ns": start_ns, "comm_end_ns": now_ns, "late_ns": 0}
    event.update(sent_bytes=None, received_bytes=None)
    for name, gbps in (("gbps", 1), ("GBps", 8), ("bytes", 8 / lasted_ns)):
        if name in found:
            event["bus_bandwidth_gbps"] = found[name] * gbps
    if "loss" in found:
        event["loss"] = found["loss"]
    return event
