# SPDX-License-Identifier: Apache-2.0
"""Tests that measure times or rates, as every lab does when it is raised, are marked `quiet`.

They count where nobody else takes the CPU.

Where such a test fails while others were busy, or CPU was stolen, it waits a while for a quiet machine and runs again;
where that is so each time it is skipped, and says so: nothing is known. On a quiet machine it fails like any other, and
so it does where each try ended in an error that no noise makes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
PATIENCE_S = 15  # for a quiet machine, before another try
LOOK_S = 0.3
BUSY_MAX = 0.2  # of all cores, while the test itself does nothing
STEAL_MAX = 0.005  # of all cores, also while the test runs
STAT = Path("/proc/stat")
NO_NOISE = (
    "AttributeError",
    "FileNotFoundError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "PermissionError",
    "TypeError",
)


@dataclass(frozen=True)
class Cpu:
    """What the CPUs did since the machine started, in ticks."""

    busy: int
    steal: int
    all: int

    @classmethod
    def now(cls) -> Self:
        """Of all cores together."""
        user, nice, system, idle, waiting, irq, softirq, steal = map(int, STAT.read_text().split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        return cls(busy, steal, busy + idle + waiting)

    def since(self, before: "Cpu") -> tuple[float, float]:
        """Shares of all cores that were busy (steal included), and stolen."""
        ticks = max(self.all - before.all, 1)
        return (self.busy - before.busy) / ticks, (self.steal - before.steal) / ticks


def others() -> str:
    """What disturbs a test that does nothing for a moment; empty on a quiet machine."""
    before = Cpu.now()
    time.sleep(LOOK_S)
    busy, stolen = Cpu.now().since(before)
    return _disturbance(busy, stolen)


def _disturbance(busy: float, stolen: float) -> str:
    if busy > BUSY_MAX:
        return f"others took {busy:.0%} of the CPU (limit {BUSY_MAX:.0%})"
    if stolen > STEAL_MAX:
        return f"{stolen:.1%} of the CPU was stolen (limit {STEAL_MAX:.1%})"
    return ""


def _failure(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.splitlines()[0] if crash and crash.message else str(report.longrepr).splitlines()[-1]


def wait_for_quiet() -> None:
    """For as long as it takes, but not too long."""
    deadline = time.monotonic() + PATIENCE_S
    while others() and time.monotonic() < deadline:
        time.sleep(LOOK_S)


def run(item: pytest.Item, nextitem: pytest.Item | None) -> Sequence[pytest.TestReport]:
    """Run a test until it passes, or fails on a quiet machine; skipped if there never was one."""
    failures = []
    for number in range(TRIES):
        if number:
            item.session._setupstate.teardown_exact(None)  # or a fixture that failed would fail again, unasked
            wait_for_quiet()
        begun = Cpu.now()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        _, stolen = Cpu.now().since(begun)
        if not any(report.failed for report in reports) or not (reason := _disturbance(0, stolen) or others()):
            return reports
        failures += [_failure(report) for report in reports if report.failed][:1]
    if all(failure.startswith(NO_NOISE) for failure in failures):
        return reports
    path, line, _ = item.location
    for report in reports:
        if report.failed:
            said = f"{TRIES} tries failed on a machine that was not quiet ({reason}), the last one: {failures[-1]}"
            report.outcome, report.longrepr = "skipped", (path, line or 0, said)
    return reports
