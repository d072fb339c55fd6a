# SPDX-License-Identifier: Apache-2.0
"""What a run killed earlier on this machine left would fail real-lab tests: undone once, before the first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

from tests import quiet

# The profile in force, which may be the one for CI; but an example may take as long as a busy machine lets it.
hypothesis.settings.register_profile("patient", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("patient")

# Their tests raise labs, whose links are measured when they are raised, or play programs against the clock.
AGAINST_THE_CLOCK = (
    "ansible/test_provision.py",
    "captures/test_real_lab.py",
    "captures/test_trial.py",
    "crossgen/test_iperf.py",
    "crossgen/test_send.py",
    "extending/test_trainer.py",
    "extending/test_transport.py",
    "judge/test_of_others.py",
    "lab/",
    "native/",
    "rack/test_guard.py",
    "rack/test_lab_as_rack.py",
    "runner/test_clock_runs.py",
    "runner/test_profile.py",
    "runner/test_real_lab.py",
    "transports/",
)
COMPUTING = (
    "lab/test_calibrate.py",
    "lab/test_host_settings.py",
    "lab/test_pure.py",
    "lab/test_proposals.py",
    "lab/test_search.py",
)  # for all that: its failures are never somebody else's


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They are `quiet` ones."""
    places = tuple(str(Path(__file__).parent / each) for each in AGAINST_THE_CLOCK)
    for item in items:
        if str(item.path).startswith(places) and not str(item.path).endswith(COMPUTING):
            item.add_marker("quiet")


def pytest_configure() -> None:
    """What ignores signals, `nohup` for one, hands that on; what tests start shall hear them."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_by_dead_runs() -> None:
    """Live runs are left alone, as by everyone's `roundabout clean`."""
    if os.geteuid() == 0:
        subprocess.run([Path(sys.executable).with_name("roundabout"), "clean"], check=True)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tests marked `quiet` are run as tests/quiet.py says."""
    if item.get_closest_marker("quiet") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in quiet.run(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
