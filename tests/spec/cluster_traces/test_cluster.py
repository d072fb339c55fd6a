# SPDX-License-Identifier: Apache-2.0
"""Experiments that have a cluster in place of jobs: what is refused, and what runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from roundabout import build_experiment, plan_experiment, run_experiment
from roundabout.core.errors import RoundaboutError
from roundabout.plan import with_simulated_jobs
from roundabout.spec.loader import load_experiment

pytestmark = pytest.mark.unit

CLUSTER: dict[str, Any] = {
    "scheduler": "random",
    "trace": {"kind": "poisson", "load": 1.0, "jobs": 5, "iterations": {"least": 5, "most": 20}},
}
FILE: dict[str, Any] = {
    "name": "try",
    "about": "a trace",
    "topology": "cluster-24",
    "transport": {"name": "dcqcn", "T_us": 125},
    "cluster": CLUSTER,
}
ONE = {"jobs": {"j": {"profile": "vgg19-fig1", "workers": ["s0", "s1"]}}, "iterations": 5}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (ONE, "jobs beside cluster"),
        ({"cluster": CLUSTER | {"scheduler": "themes"}}, "found scheduler 'themes'"),
        ({"cluster": CLUSTER | {"scheduler": {"name": "random", "epoch": 1}}}, "found option 'epoch'"),
        ({"cluster": CLUSTER | {"trace": {"kind": "snapshot", "jobs": [{"workers": 25}]}}}, "found 25 workers"),
        ({"topology": "dumbbell-2x2"}, "expected at most 4"),
        ({"cluster": CLUSTER | {"migrate": 1, "fragments": 2}}, "found fragments beside migrate"),
    ],
)
def test_an_impossible_cluster_experiment_is_refused_before_it_runs(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(RoundaboutError, match=found):
        build_experiment(FILE | changes)


def test_hours_are_refused_where_they_would_take_hours() -> None:
    long = {"cluster": CLUSTER | {"trace": {"kind": "poisson", "load": 0.5, "jobs": 200}}}
    with pytest.raises(RoundaboutError, match="hours") as caught:
        plan_experiment(build_experiment(FILE | long), testbed="lab")
    assert "--testbed fluid" in str(caught.value.hint)
    sliced = {"cluster": long["cluster"] | {"slice": {"from_s": 10, "lasts_s": 20}}}
    assert plan_experiment(build_experiment(FILE | sliced), testbed="lab").expected_s < 60


def test_keys_of_trials_without_a_cluster_are_unchanged() -> None:
    stored = load_experiment("unfair-vgg19").cells[0].spec.model_dump(mode="json")
    assert "cluster" not in stored and "submitted" not in stored


def test_keys_of_clusters_that_do_not_bound_fragments_are_unchanged() -> None:
    stored = [cell.spec.model_dump(mode="json")["cluster"] for cell in build_experiment(FILE).cells]
    assert all("fragments" not in each for each in stored)
    (bound,) = build_experiment(FILE | {"cluster": CLUSTER | {"fragments": 2}}).cells
    assert bound.spec.model_dump(mode="json")["cluster"]["fragments"] == 2


def test_a_testbed_does_what_was_worked_out(tmp_path: Path) -> None:
    run = run_experiment(build_experiment(FILE), testbed="fluid", runs=tmp_path, quiet=True)
    (trial,) = run.trials()
    folder = run.path / "trials" / trial["trial"]
    timeline = json.loads((folder / "timeline.json").read_text())
    rows = run.table("iterations").to_pylist()
    for stint in timeline["stints"]:
        counted = sum(row["job"] == stint["name"] and row["rank"] == 0 for row in rows)
        assert counted == (stint["iterations"] if len(stint["workers"]) > 1 else 0)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [each["at_s"] for each in events if each["event"] == "decision"] == [
        each["at_s"] for each in timeline["decisions"]
    ]


def test_packets_play_the_jobs_of_a_slice(tmp_path: Path) -> None:
    trace = {"kind": "snapshot", "jobs": [{"model": "ResNet50", "batch": 256, "workers": 2}] * 2}
    sliced = {"cluster": CLUSTER | {"trace": trace, "slice": {"from_s": 5.0, "lasts_s": 0.2}}}
    fluid, packets = (
        run_experiment(build_experiment(FILE | sliced), testbed=name, runs=tmp_path, quiet=True)
        for name in ("fluid", "packets")
    )
    timelines = [
        json.loads((run.path / "trials" / trial["trial"] / "timeline.json").read_text())
        for run in (fluid, packets)
        for trial in run.trials()
    ]
    assert timelines[0] == timelines[1]
    jobs = [{row["job"] for row in run.table("iterations").to_pylist()} for run in (fluid, packets)]
    assert jobs[0] == jobs[1] != set()


def test_a_window_without_jobs_is_named() -> None:
    empty = {"cluster": CLUSTER | {"slice": {"from_s": 50_000.0, "lasts_s": 1.0}}}
    (cell,) = build_experiment(FILE | empty).cells
    with pytest.raises(RoundaboutError, match="no job of several workers in its window from 50000 s on"):
        with_simulated_jobs(cell.spec, 1)
