# SPDX-License-Identifier: Apache-2.0
"""Looks at a growing run: how many there are, and which of them a budget allows."""

from types import SimpleNamespace
from typing import Any

import pytest

from roundabout.plan.looks import MAX_LOOKS, plan_looks
from roundabout.store.look_schedule import LookSchedule

pytestmark = pytest.mark.unit


def plan_of(repetitions: int) -> Any:
    return SimpleNamespace(trials=range(repetitions), expected_s=10.0 * repetitions, report_s=20.0)


@pytest.mark.parametrize(
    ("budget_s", "allowed"), [(0, [4]), (99, [4]), (100, [4, 8]), (340, [4, 8, 16, 32]), (1e9, [4, 8, 16, 32])]
)
def test_the_budget_allows_the_first_look_and_those_expected_to_end_in_time(
    budget_s: float, allowed: list[int]
) -> None:
    looks = plan_looks(plan_of, 4, budget_s)
    assert [look.repetitions for look in looks] == [4, 8, 16, 32]
    assert [look.repetitions for look in looks if look.is_allowed] == allowed
    assert len(looks) == MAX_LOOKS


def test_there_are_no_looks_beyond_the_limit_of_repetitions() -> None:
    assert [look.repetitions for look in plan_looks(plan_of, 300, 1e9)] == [300, 600]


def test_a_look_without_further_trials_is_left_out() -> None:
    assert [look.repetitions for look in plan_looks(lambda _: plan_of(1), 4, 1e9)] == [4]


@pytest.mark.parametrize(
    ("done", "spent_s", "following"), [(4, 50, 8), (4, 51, None), (8, 50, 16), (16, 0, None), (5, 0, 8)]
)
def test_a_run_that_is_slower_than_expected_ends_early(done: int, spent_s: float, following: int | None) -> None:
    assert LookSchedule((4, 8, 16), 100, spent_s).after(done) == following


def test_the_manifest_of_a_run_without_looks_has_no_schedule() -> None:
    assert LookSchedule.of({}) is None
    manifest = {"looks": {"repetitions": [4, 8], "budget_s": 60, "spent_s": 1.5}}
    assert LookSchedule.of(manifest) == LookSchedule((4, 8), 60, 1.5)
