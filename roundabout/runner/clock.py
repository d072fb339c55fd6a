# SPDX-License-Identifier: Apache-2.0
"""Clocks: the run's own, and how far each host's is from it.

The run's clock is UTC read once, carried on by this machine's monotonic clock: it never steps. A host's offset is what
must be added to its monotonic nanoseconds. It is measured by questions to collectors/clock.py: the answer was made at
some time between question and reply, so half the round trip bounds the error (Cristian, 1989); the quickest of several
is kept.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from roundabout.runner.links import Link, LostHostError, Program

ROUND_TRIPS = 8
Nanoseconds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RunClock:
    """UTC nanoseconds that never step; `boot` says to which boot the monotonic anchor belongs."""

    anchor_utc_ns: int
    anchor_monotonic_ns: int
    boot: str

    @classmethod
    def start(cls) -> "RunClock":
        """Anchor a new clock now."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return cls(time.time_ns(), time.monotonic_ns(), boot)

    @classmethod
    def carry_on(cls, recorded: Mapping[str, Any]) -> "RunClock":
        """The recorded clock, if this is still its boot; else a new one."""
        fresh = cls.start()
        return cls(**recorded) if recorded["boot"] == fresh.boot else fresh

    @property
    def offset_ns(self) -> int:
        """What must be added to this machine's monotonic nanoseconds."""
        return self.anchor_utc_ns - self.anchor_monotonic_ns

    def now_ns(self) -> int:
        """The run's time now."""
        return time.monotonic_ns() + self.offset_ns


@dataclass(frozen=True)
class Offset:
    """run's ns = host's monotonic ns + offset_ns, give or take bound_ns; measured at `host_ns`."""

    host_ns: int
    offset_ns: int
    bound_ns: int


class Ledger:
    """Every offset measured in one trial, host by host."""

    def __init__(self) -> None:
        self._offsets: dict[str, list[Offset]] = {}

    def add(self, host: str, offset: Offset) -> None:
        """Enter a measurement; they come in the order of time."""
        self._offsets.setdefault(host, []).append(offset)

    def on_host(self, host: str, run_ns: int) -> int:
        """The host's monotonic nanoseconds when the run's clock shows `run_ns`."""
        return run_ns - self._offsets[host][-1].offset_ns

    def on_run(self, host: str, host_ns: Nanoseconds) -> Nanoseconds:
        """The run's nanoseconds; between two measurements the offset changes evenly."""
        offsets = self._offsets[host]
        base = offsets[0].offset_ns  # what is added is interpolated beside it: floats do not hold 1e18 exactly
        drift = np.interp(host_ns, [each.host_ns for each in offsets], [each.offset_ns - base for each in offsets])
        return host_ns + base + np.rint(drift).astype(np.int64)

    def bound_ns(self, host: str) -> int:
        """How far `on_run` can be off."""
        return max(offset.bound_ns for offset in self._offsets[host])

    def as_json(self) -> dict[str, list[dict[str, int]]]:
        """For trial.json."""
        return {host: [asdict(offset) for offset in offsets] for host, offsets in self._offsets.items()}


class HostClock:
    """A host's clock, answered by clock.py, which runs there as long as the bench is open."""

    def __init__(self, link: Link, clock_py: Path, run_clock: RunClock) -> None:
        self._answers: SimpleQueue[str | None] = SimpleQueue()
        self._program = Program(
            "clock", link, ["python3", str(clock_py)], lambda _program, line: self._answers.put(line)
        )
        self._run_clock = run_clock

    def measure(self) -> Offset:
        """Ask several times, keep the quickest answer. Raises LostHostError."""
        return min((self._ask() for _ in range(ROUND_TRIPS)), key=lambda offset: offset.bound_ns)

    def stop(self) -> None:
        """End clock.py."""
        self._program.close_stdin()
        self._program.finish()

    def _ask(self) -> Offset:
        before_ns = self._run_clock.now_ns()
        self._program.send("?")
        answer = self._answers.get()
        after_ns = self._run_clock.now_ns()
        if answer is None:
            raise LostHostError(self._program.host, f"its clock stopped answering: {self._program.why_ended()}")
        host_ns = int(answer.split()[0])
        return Offset(host_ns, (before_ns + after_ns) // 2 - host_ns, (after_ns - before_ns) // 2 + 1)


class SharedClock:
    """The clock of a host that runs on this machine's kernel: its offset is known exactly."""

    def __init__(self, run_clock: RunClock) -> None:
        self._run_clock = run_clock

    def measure(self) -> Offset:
        """The run clock's own offset."""
        return Offset(time.monotonic_ns(), self._run_clock.offset_ns, 0)

    def stop(self) -> None:
        """Nothing runs."""


Clock = HostClock | SharedClock
