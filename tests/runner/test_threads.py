# SPDX-License-Identifier: Apache-2.0
"""Runs in a thread other than the main one: computed ones come out the same, others are refused before they begin."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from roundabout import build_experiment, run_experiment
from roundabout.core.errors import UsageError
from roundabout.spec import Experiment

pytestmark = pytest.mark.unit

FIELDS: dict[str, Any] = {
    "name": "threads",
    "about": "Two jobs that meet",
    "topology": "dumbbell-2x2",
    "profile": "vgg19-fig1",
    "jobs": {"j1": {"workers": ["s0", "s2"]}, "j2": {"workers": ["s1", "s3"]}},
    "iterations": 3,
    "transport": {"name": "dcqcn"},
}


@pytest.fixture
def experiment() -> Experiment:
    return build_experiment(FIELDS)


def test_a_computed_run_may_have_a_thread_of_its_own(experiment: Experiment, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        folders = [tmp_path / "a", tmp_path / "b"]
        runs = list(pool.map(lambda runs: run_experiment(experiment, testbed="fluid", runs=runs, quiet=True), folders))
    times = [run.table("iterations")["iteration_ms"].to_pylist() for run in runs]
    assert times[0] == times[1]
    assert len(times[0]) == 12


def test_a_lab_in_a_thread_is_refused_before_anything_is_made(experiment: Experiment, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(run_experiment, experiment, testbed="lab", runs=tmp_path / "runs", quiet=True)
    with pytest.raises(UsageError, match="found a thread for a run on testbed lab, expected the main thread"):
        refused.result()
    assert list(tmp_path.iterdir()) == []
