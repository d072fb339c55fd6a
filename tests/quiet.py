# SPDX-License-Identifier: Apache-2.0
"""Retry tests marked `quiet`, which measure times or rates, when the machine was too busy to decide them.

Every lab measures its links when it is set up, so each test of a real lab is such a test. A failure counts if the
machine was quiet, or if each attempt ended in an error that noise cannot cause. Any other failure is listed as a
rerun; after the last attempt the test is reported as undecided.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from _pytest.runner import runtestprotocol

ATTEMPTS = 3
UNDECIDED_MAX = 0.1  # share of the quiet tests that may stay undecided in CI
TIMEOUT_S = 15  # longest wait for a quiet machine before another attempt
LOOK_S = 0.3
BUSY_MAX = 0.2  # share of all cores that other programs may use while the test does nothing
STEAL_MAX = 0.005  # share of all cores that a hypervisor may take while the test runs
STAT = Path("/proc/stat")
NOT_CAUSED_BY_NOISE = (
    "AttributeError",
    "FileNotFoundError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "PermissionError",
    "TypeError",
)


@dataclass(frozen=True)
class CpuTicks:
    """The ticks of all cores together since the machine started."""

    busy: int
    steal: int
    all: int

    @classmethod
    def read(cls) -> Self:
        """Read the ticks from /proc/stat."""
        user, nice, system, idle, waiting, irq, softirq, steal = map(int, STAT.read_text().split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        return cls(busy, steal, busy + idle + waiting)

    def shares_since(self, before: "CpuTicks") -> tuple[float, float]:
        """Return the shares of all cores that were busy (steal included) and stolen since `before`."""
        ticks = max(self.all - before.all, 1)
        return (self.busy - before.busy) / ticks, (self.steal - before.steal) / ticks


def observe_noise() -> str:
    """Describe the use of the CPU by other programs; return an empty string on a quiet machine."""
    before = CpuTicks.read()
    time.sleep(LOOK_S)
    return _describe_noise(*CpuTicks.read().shares_since(before))


def _describe_noise(busy: float, stolen: float) -> str:
    if busy > BUSY_MAX:
        return f"other programs used {busy:.0%} of the CPU (limit {BUSY_MAX:.0%})"
    if stolen > STEAL_MAX:
        return f"{stolen:.1%} of the CPU was stolen (limit {STEAL_MAX:.1%})"
    return ""


def _failure(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.splitlines()[0] if crash and crash.message else str(report.longrepr).splitlines()[-1]


def wait_for_quiet() -> None:
    """Wait until the machine is quiet, for TIMEOUT_S at most."""
    deadline = time.monotonic() + TIMEOUT_S
    while observe_noise() and time.monotonic() < deadline:
        time.sleep(LOOK_S)


def run_until_decided(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
    """Run a test until it passes or fails on a quiet machine, and yield the reports of every attempt."""
    failures = []
    for attempt in range(1, ATTEMPTS + 1):
        before = CpuTicks.read()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        _, stolen = CpuTicks.read().shares_since(before)
        failed = [report for report in reports if report.failed]
        noise = (_describe_noise(0, stolen) or observe_noise()) if failed else ""
        if not noise:
            yield from reports
            return
        failures.append(_failure(failed[0]))
        if attempt < ATTEMPTS:
            yield from _with_outcome(reports, "rerun", f"attempt {attempt}: {noise}; {failures[-1]}")
            item.session._setupstate.teardown_exact(None)  # or a fixture that failed would fail again without running
            wait_for_quiet()
    if not all(failure.startswith(NOT_CAUSED_BY_NOISE) for failure in failures):
        reports = _with_outcome(
            reports, "undecided", f"{ATTEMPTS} attempts failed, the last while {noise}: {failures[-1]}"
        )
    yield from reports


def _with_outcome(reports: list[pytest.TestReport], outcome: str, explanation: str) -> list[pytest.TestReport]:
    for report in reports:
        if report.failed:
            report.outcome, report.longrepr = outcome, explanation  # type: ignore[assignment]
    return reports
