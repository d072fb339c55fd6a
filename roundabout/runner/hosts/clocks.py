# SPDX-License-Identifier: Apache-2.0
"""The run's clock, and each host's offset from it.

The run's clock is UTC, read once and then advanced by this machine's monotonic clock, so it never steps. A host's
offset is the value to add to its monotonic nanoseconds. Queries to collectors/clock.py measure it: half the round trip
bounds the error (Cristian, 1989), and the fastest of several queries is used. Between measurements an offset may drift
by 500 ppm, the largest rate at which Linux slews a clock (RFC 5905). Bounds grow at this rate. A larger change is a
step.
"""

import json
import runpy
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from roundabout.core.paths import ROOT
from roundabout.runner.hosts.connections import Connection, LocalConnection, LostHostError
from roundabout.runner.hosts.deadlines import take_within, time_slices
from roundabout.runner.hosts.programs import Program

CLOCK_PY = ROOT / "collectors/clock.py"  # runs on hosts, so it imports nothing from this package
CONTROLLER = "controller"
ROUND_TRIPS = 8
ROUND_TRIPS_DURING = 3  # fewer, so that they do not disturb a trial
PERIOD_S = 2.0
ANSWER_TIMEOUT_S = 10.0  # time limit of an answer; the daemons that clock.py queries can be slow
DRIFT = 500e-6
UTC_STEP_NS = 100_000  # change of a kernel's UTC against its monotonic clock that counts as a step

Nanoseconds = npt.NDArray[np.int64]
Phase = Literal["anchor", "before", "during", "after"]
Sync = dict[str, Any]


@dataclass(frozen=True)
class RunClock:
    """The run's clock: UTC nanoseconds that never step. `boot` is the id of the boot of the monotonic anchor."""

    anchor_utc_ns: int
    anchor_monotonic_ns: int
    boot: str

    @classmethod
    def start(cls) -> "RunClock":
        """Return a new clock, anchored at the current UTC and monotonic time."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        monotonic_ns, utc_ns = _instant()
        return cls(utc_ns, monotonic_ns, boot)

    @classmethod
    def resume(cls, recorded: Mapping[str, Any]) -> "RunClock":
        """Return the clock that a manifest recorded, or a new clock if the machine has rebooted since."""
        fresh = cls.start()
        return cls(**recorded) if recorded["boot"] == fresh.boot else fresh

    @property
    def offset_ns(self) -> int:
        """Return the nanoseconds to add to this machine's monotonic clock to get the run's time."""
        return self.anchor_utc_ns - self.anchor_monotonic_ns

    @property
    def anchor(self) -> "Reading":
        """Return the clock's first reading. Later steps of UTC show as differences from it."""
        return Reading(self.anchor_monotonic_ns, self.anchor_utc_ns, self.offset_ns, 0, "anchor")

    def now_ns(self) -> int:
        """Return the current time of the run's clock, in ns."""
        return time.monotonic_ns() + self.offset_ns


@dataclass(frozen=True)
class Reading:
    """A measurement of a host's clock: run's ns = host's monotonic ns + offset_ns, with an error of at most bound_ns.

    The bound of the controller's own clock is 0. `sync` is clock.py's report on the daemon that disciplines the clock,
    or None without a report.
    """

    host_ns: int
    utc_ns: int  # the host's own UTC
    offset_ns: int
    bound_ns: int
    phase: Phase
    sync: Sync | None = None

    @property
    def run_ns(self) -> int:
        """Return the reading's instant on the run's clock, in ns."""
        return self.host_ns + self.offset_ns


@dataclass(frozen=True)
class Step:
    """A step of a clock by `by_ns`, between the instants `after_ns` and `before_ns` of the run's clock."""

    host: str
    clock: Literal["monotonic", "UTC"]
    by_ns: int
    explained_ns: int  # largest change that drift and the readings' bounds explain
    after_ns: int
    before_ns: int

    def __str__(self) -> str:
        after, before = (
            datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds")
            for ns in (self.after_ns, self.before_ns)
        )
        return (
            f"{self.host}: its {self.clock} clock stepped by {self.by_ns / 1e6:+.3f} ms between {after} and {before}"
            f" (drift and bounds explain {self.explained_ns / 1e6:.3f} ms)"
        )


class ClockLog:
    """All readings of all clocks in one trial, by host."""

    def __init__(self) -> None:
        self._readings: dict[str, list[Reading]] = {}

    def add(self, host: str, reading: Reading) -> None:
        """Add a reading of `host`. Readings must be added in the order of time."""
        self._readings.setdefault(host, []).append(reading)

    @property
    def readings(self) -> Mapping[str, list[Reading]]:
        """Return all readings, by host."""
        return self._readings

    def on_host(self, host: str, run_ns: int) -> int:
        """Convert an instant of the run's clock to the host's monotonic ns, by the last reading."""
        return run_ns - self._readings[host][-1].offset_ns

    def on_run(self, host: str, host_ns: Nanoseconds) -> Nanoseconds:
        """Convert instants of the host's monotonic clock to the run's ns, with linear interpolation of the offset."""
        line = _OffsetLine(self._readings[host])
        return host_ns + line.base_ns + np.rint(line.moved_ns(host_ns)).astype(np.int64)

    def bound_ns(self, host: str, host_ns: Nanoseconds) -> Nanoseconds:
        """Return a bound, in ns, of the error of `on_run` at each of these instants."""
        return _OffsetLine(self._readings[host]).bound_ns(host_ns)

    def steps(self) -> list[Step]:
        """Return the steps of monotonic clocks and of each kernel's UTC.

        A step is a change that exceeds the possible drift and the bounds of the readings.
        """
        return [
            step
            for host, readings in self._readings.items()
            for pair in pairwise(readings)
            if (step := _step(host, *pair)) is not None
        ]

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return all readings as trial.json stores them."""
        return {host: [asdict(reading) for reading in readings] for host, readings in self._readings.items()}


class _OffsetLine:
    """A host's readings, connected by straight lines of its offset."""

    def __init__(self, readings: list[Reading]) -> None:
        # Times and offsets are taken from the first one's: floats do not hold 1e18 exactly.
        first = readings[0]
        self._first_ns, self.base_ns = first.host_ns, first.offset_ns
        self._at = np.array([each.host_ns - first.host_ns for each in readings], dtype=np.float64)
        self._moved = np.array([each.offset_ns - first.offset_ns for each in readings], dtype=np.float64)
        self._bound = np.array([each.bound_ns for each in readings], dtype=np.float64)
        stepped = [abs(next_.offset_ns - one.offset_ns) * _has_stepped(one, next_) for one, next_ in pairwise(readings)]
        self._stepped = np.array([0, *stepped, 0], dtype=np.float64)  # before each reading, and after the last

    def moved_ns(self, host_ns: Nanoseconds) -> npt.NDArray[np.float64]:
        """Return the offset at these instants, less `base_ns`."""
        return np.interp(host_ns - self._first_ns, self._at, self._moved)

    def bound_ns(self, host_ns: Nanoseconds) -> Nanoseconds:
        """Return the largest distance of the offset from the line, which drift from either neighbor limits."""
        since = host_ns - self._first_ns
        later = np.searchsorted(self._at, since, side="right")
        neighbours = np.maximum(later - 1, 0), np.minimum(later, len(self._at) - 1)
        spread = [self._drift_bound_ns(which, since) for which in neighbours]
        lowest = np.maximum(*(self._moved[which] - each for which, each in zip(neighbours, spread, strict=True)))
        highest = np.minimum(*(self._moved[which] + each for which, each in zip(neighbours, spread, strict=True)))
        line = self.moved_ns(host_ns)
        # If the clock stepped between two readings, an instant may lie on either side of the step.
        bound = np.where(
            self._stepped[later] > 0,
            self._stepped[later] + np.maximum(*spread),
            np.maximum(highest - line, line - lowest),
        )
        return np.ceil(bound).astype(np.int64)

    def _drift_bound_ns(self, which: npt.NDArray[np.int64], since: Nanoseconds) -> npt.NDArray[np.float64]:
        """Return the possible distance of the offset, at each instant, from its reading `which`."""
        bound = self._bound[which]
        spread: npt.NDArray[np.float64] = bound + DRIFT * np.abs(since - self._at[which]) * (bound > 0)
        return spread


def _step(host: str, one: Reading, next_: Reading) -> Step | None:
    if _has_stepped(one, next_):
        by_ns = one.offset_ns - next_.offset_ns
        return Step(host, "monotonic", by_ns, _explained_ns(one, next_), one.run_ns, next_.run_ns)
    by_ns = (next_.utc_ns - next_.host_ns) - (one.utc_ns - one.host_ns)
    is_reported_elsewhere = one.bound_ns == 0 and host != CONTROLLER
    if abs(by_ns) > UTC_STEP_NS and not is_reported_elsewhere:
        return Step(host, "UTC", by_ns, UTC_STEP_NS, one.run_ns, next_.run_ns)
    return None


def _has_stepped(one: Reading, next_: Reading) -> bool:
    return abs(next_.offset_ns - one.offset_ns) > _explained_ns(one, next_)


def _explained_ns(one: Reading, next_: Reading) -> int:
    """Return the largest apparent move of an offset between two readings without a step."""
    # The host's own time between them: on the run's clock, two readings close to each other may be in the wrong order.
    return one.bound_ns + next_.bound_ns + round(DRIFT * abs(next_.host_ns - one.host_ns))


class HostClock:
    """A host's clock, read through clock.py, which runs on the host while the session is open.

    `dilation` multiplies the time limit of answers.
    """

    def __init__(self, connection: Connection, clock_py: Path, run_clock: RunClock, dilation: float = 1.0) -> None:
        self._answers: SimpleQueue[tuple[int, str | None]] = SimpleQueue()
        self._connection = connection
        self._program = Program(
            "clock",
            connection,
            ["python3", "-IS", str(clock_py)],
            lambda _program, line: self._answers.put((run_clock.now_ns(), line)),
        )
        self._run_clock, self._dilation = run_clock, dilation

    def read(self, phase: Phase, sync: Sync | None = None) -> Reading:
        """Query the clock several times, and return the fastest reading. Raises LostHostError."""
        round_trips = ROUND_TRIPS_DURING if phase == "during" else ROUND_TRIPS
        return min((self._read_once(phase, sync) for _ in range(round_trips)), key=lambda reading: reading.bound_ns)

    def sync(self) -> Sync | None:
        """Return the state of the daemon that disciplines the clock. Raises LostHostError."""
        _, answer, _ = self._query("sync")
        found: Sync = json.loads(answer)
        return found

    def stop(self) -> None:
        """End clock.py on the host."""
        self._program.close_stdin()
        self._program.finish()

    def _read_once(self, phase: Phase, sync: Sync | None) -> Reading:
        before_ns, answer, after_ns = self._query("time")
        host_ns, utc_ns = (int(word) for word in answer.split())
        # Halves are rounded, here and when times are joined.
        bound_ns = (after_ns - before_ns) // 2 + 2
        return Reading(host_ns, utc_ns, (before_ns + after_ns) // 2 - host_ns, bound_ns, phase, sync)

    def _query(self, question: str) -> tuple[int, str, int]:
        """Return the answer, and the run's time before and after it."""
        if self._program.has_ended:
            raise self._ended()
        before_ns, timeout_s = self._run_clock.now_ns(), ANSWER_TIMEOUT_S * self._dilation
        self._program.send(question)
        try:
            after_ns, answer = take_within(self._answers, time_slices(timeout_s))
        except Empty:
            self._connection.close()  # ends other waits for this host
            raise LostHostError(self._program.host, f"its clock did not answer within {timeout_s:g} s") from None
        if answer is None:
            raise self._ended()
        return before_ns, answer, after_ns

    def _ended(self) -> LostHostError:
        return LostHostError(self._program.host, f"its clock stopped answering: {self._program.describe_end()}")


class SharedClock:
    """The clock of a host on this machine's kernel. Its offset is known exactly."""

    def __init__(self, run_clock: RunClock) -> None:
        self._run_clock = run_clock

    def read(self, phase: Phase, sync: Sync | None = None) -> Reading:
        """Return a reading with the run clock's offset and an error bound of 0."""
        monotonic_ns, utc_ns = _instant()
        return Reading(monotonic_ns, utc_ns, self._run_clock.offset_ns, 0, phase, sync)

    def sync(self) -> Sync | None:
        """Return None, because the controller's clock reports the daemon."""
        return None

    def stop(self) -> None:
        """Do nothing, because no program runs."""


class ControllerClock(SharedClock):
    """This machine's clock and the state of the daemon that disciplines it."""

    def __init__(self, run_clock: RunClock) -> None:
        super().__init__(run_clock)
        self._daemon_clock = HostClock(LocalConnection(), CLOCK_PY, run_clock)

    def sync(self) -> Sync | None:
        """Return the state of the daemon that disciplines this machine's clock."""
        return self._daemon_clock.sync()

    def stop(self) -> None:
        """End clock.py on this machine."""
        self._daemon_clock.stop()


Clock = HostClock | SharedClock


@contextmanager
def call_repeatedly(read: Callable[[], None]) -> Iterator[None]:
    """Call `read` every few seconds in a thread for the duration of the block.

    An error of `read` is raised at the end of the block, unless the block itself fails.
    """
    ended = threading.Event()
    failures: list[Exception] = []

    def keep_reading() -> None:
        try:
            while not ended.wait(PERIOD_S):
                read()
        except Exception as error:
            failures.append(error)

    # A daemon, because `ended` stays unset if a signal comes after the thread's start and before the block.
    thread = threading.Thread(target=keep_reading, name="clocks", daemon=True)
    try:
        thread.start()
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()
    if failures:
        raise failures[0]


def _instant() -> tuple[int, int]:
    """Return monotonic and UTC ns of one instant, as clock.py reads them on hosts."""
    return _clock_reader()()


@cache
def _clock_reader() -> Callable[[], tuple[int, int]]:
    reader: Callable[[], tuple[int, int]] = runpy.run_path(str(CLOCK_PY))["read_clocks"]
    return reader
