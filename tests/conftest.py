# SPDX-License-Identifier: Apache-2.0
"""Give every test its level, retry quiet tests, and take turns on the machine with runs and other test sessions."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from tests import quiet

LEVELS = ("unit", "lab")  # of which each test has exactly one (pyproject.toml explains them)
QUIET_TESTS = pytest.StashKey[int]()
UNDECIDED_TESTS = pytest.StashKey[int]()

# The profile in force, which may be the one for CI; but examples and drawing them may take as long as a busy machine
# lets them.
hypothesis.settings.register_profile(
    "patient", hypothesis.settings(), deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a file of tests that has no level, or two."""
    wrong = {
        str(item.path) for item in items if sum(item.get_closest_marker(level) is not None for level in LEVELS) != 1
    }
    if wrong:
        raise pytest.UsageError(
            f"{', '.join(sorted(wrong))}: expected one level: pytestmark = pytest.mark.unit or pytest.mark.lab"
        )


def without_shims(path: str) -> str:
    """Return PATH without folders whose python3 is a script.

    A version manager's python3 is one (pyenv), and starts 40 shells for each call. Tests make hundreds of calls.
    """
    folders = path.split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not _is_script(Path(folder) / "python3"))


def _is_script(program: Path) -> bool:
    if not program.is_file():
        return False
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def pytest_configure(config: pytest.Config) -> None:
    """Give programs under test the usual signals, which the caller may ignore (`nohup`), and a direct python3."""
    config.stash[QUIET_TESTS] = config.stash[UNDECIDED_TESTS] = 0
    # Some containers set it. Each of the many programs under test would then compile its Python again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ["PATH"] = without_shims(os.environ["PATH"])
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Take turns with runs and with the tests of other checkouts, if the session runs tests of level `lab`.

    These tests share the kernel and measure time. What killed runs and test sessions left is undone before them.
    """
    if (
        os.geteuid() != 0
        or session.config.option.collectonly
        or not any(item.get_closest_marker("lab") for item in session.items)
    ):
        return (yield)
    try:
        with machine_lease.lend("machine", f"tests of {ROOT}", STATE, wait_s=machine_lease.QUEUE_S, report=_print_wait):
            subprocess.run([Path(sys.executable).with_name("roundabout"), "clean"], check=True)
            return (yield)
    except RoundaboutError as error:
        pytest.exit(str(error), returncode=1)


def _print_wait(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run tests marked `quiet` as tests/quiet.py says."""
    if item.get_closest_marker("quiet") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    outcomes = set()
    for report in quiet.run_until_decided(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
        outcomes.add(report.outcome)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    item.config.stash[QUIET_TESTS] += 1
    item.config.stash[UNDECIDED_TESTS] += "undecided" in outcomes
    return True


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Show quiet tests that could not be decided, and their reruns, under words of their own."""
    shown = {"undecided": "U", "rerun": "R"}
    if report.outcome not in shown:
        return None
    return report.outcome, shown[report.outcome], (report.outcome.upper(), {"yellow": True})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List every rerun and every undecided test with the reason."""
    for outcome in ("rerun", "undecided"):
        for report in terminalreporter.stats.get(outcome, []):
            if isinstance(report.longrepr, str):
                terminalreporter.write_line(f"{outcome.upper()} {report.nodeid} - {report.longrepr}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail in CI if too many quiet tests are undecided."""
    tests, undecided = session.config.stash[QUIET_TESTS], session.config.stash[UNDECIDED_TESTS]
    if undecided > quiet.UNDECIDED_MAX * tests and "CI" in os.environ:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="module")
def few_resamplings() -> Iterator[None]:
    """Resample a few times only, in modules of tests that look at no interval."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.statistics.phases.RESAMPLINGS", 5)
        patch.setattr("analysis.advice.expected_slowdown.DRAWS", 5)
        yield
