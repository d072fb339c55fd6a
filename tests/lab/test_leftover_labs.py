# SPDX-License-Identifier: Apache-2.0
"""A test session removes the labs of killed sessions, and no others."""

import pytest

from tests.lab.leftover_labs import of_dead_sessions

pytestmark = pytest.mark.unit


def test_labs_of_dead_sessions_are_found_and_no_others() -> None:
    dead = ["test-17-shared", "test-17-0", "test-echo-17", "bystander-17"]
    others = ["test-18-shared", "test-rack-18", "dumbbell-2x2", "test-mine", "latest-17-0", "run-20261128T010203Z-17ab"]
    assert of_dead_sessions([*others, *dead], ["1", "18"]) == dead
