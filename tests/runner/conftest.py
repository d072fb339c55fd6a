# SPDX-License-Identifier: Apache-2.0
"""A workplace with a fake testbed (tests/fakes/testbed.py) for each test of the runner."""

import sys

import pytest

from tests.fakes.workplace import Workplace, experiment


@pytest.fixture
def work(tmp_path):
    return Workplace(tmp_path)


@pytest.fixture
def tiny():
    return experiment


def command(*words):
    """Return the command that starts a runner in a process of its own."""
    return [sys.executable, "-m", "tests.runner.runner_process", *map(str, words)]


@pytest.fixture
def drive():
    return command
