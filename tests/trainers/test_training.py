# SPDX-License-Identifier: Apache-2.0
"""Jobs that PyTorch really trains, in a real lab; TRAINING_PYTHON names an interpreter that has it, if not Debian's."""

import json
import os
import statistics
from typing import Any

import pytest

from analysis.reading.data import filter_rows
from roundabout.api import run_experiment
from roundabout.spec import load_experiment, load_profile
from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.proof]
PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
PROFILE = load_profile("ddp-lab")
TRAINED = {"name": "ddp", "python": PYTHON}
REPLAYED = {"trainer": {"name": "replay"}, "inputs": {"profile": "alone"}}
EXPERIMENT = {
    "name": "trained",
    "about": "Two jobs that really train, alone and together",
    "topology": "dumbbell-2x2",
    "profile": "ddp-lab",
    "scale": 200,
    "jobs": {
        "j1": {"workers": ["s0", "s2"], "trainer": TRAINED},
        "j2": {"workers": ["s1", "s3"], "trainer": TRAINED},
    },
    "iterations": 30,
    "transport": {"name": "dcqcn"},
    "factors": {
        "variant": {
            "alone": {"one_job_at_a_time": True},
            "fair": {},
            "mltcp": {"transport": {"name": "mltcp_cubic"}},
            "torchrun": {
                "one_job_at_a_time": True,
                "jobs": {"j1": {"trainer": {"launch": "torchrun"}}, "j2": {"trainer": {"launch": "torchrun"}}},
            },
            "replayed": {"one_job_at_a_time": True, "jobs": {"j1": REPLAYED, "j2": REPLAYED}},
        }
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("trained")
    file = folder / "trained.yaml"
    file.write_text(json.dumps(EXPERIMENT))
    return run_experiment(load_experiment(file), runs=folder / "runs", quiet=True)


def iterations(run: Run, variant: str) -> list[dict[str, Any]]:
    return filter_rows(run.table("iterations"), variant=variant).to_pylist()


def test_all_trials_are_valid(run):
    assert [trial for trial in run.trials() if not trial["valid"]] == []


@pytest.mark.parametrize("variant", ["alone", "fair", "mltcp", "torchrun"])
def test_each_variants_training_loss_falls(run, variant):
    rows = iterations(run, variant)
    for job in ("j1", "j2"):
        begin, end = (
            statistics.mean(row["loss"] for row in rows if row["job"] == job and row["iteration"] in which)
            for which in (range(10), range(20, 30))
        )
        assert end < 0.95 * begin


def test_workers_send_what_the_profile_says(run):
    # By the mean: what one iteration's end leaves in a socket goes out with the next.
    rows = iterations(run, "alone")
    for job, rank in {(row["job"], row["rank"]) for row in rows}:
        sent = [row["sent_bytes"] for row in rows if (row["job"], row["rank"]) == (job, rank)]
        assert statistics.mean(sent) == pytest.approx(PROFILE.comm_bytes, rel=0.01)


def test_the_flows_are_those_of_the_job_and_its_transport(run):
    for variant, name in (("alone", "dcqcn"), ("mltcp", "mltcp_cubic")):
        flows = filter_rows(run.table("flows"), variant=variant).to_pylist()
        assert {(row["job"], row["rank"], row["peer_rank"]) for row in flows} == {
            (job, rank, 1 - rank) for job in ("j1", "j2") for rank in (0, 1)
        }
        assert {name in row["congestion_control"] for row in flows} == {True}


def test_computing_alone_and_shared_takes_as_long(run):
    medians = [
        statistics.median(row["compute_ms"] for row in iterations(run, variant)) for variant in ("alone", "fair")
    ]
    assert medians == pytest.approx([PROFILE.compute_ms] * 2, rel=0.03)


def test_started_by_torchrun_it_trains_alike(run):
    assert median_ms(run, "torchrun") == pytest.approx(median_ms(run, "alone"), rel=0.05)


def test_replayed_as_measured_it_takes_as_long(run):
    assert median_ms(run, "replayed") == pytest.approx(median_ms(run, "alone"), rel=0.05)


def median_ms(run: Run, variant: str) -> float:
    return statistics.median(row["iteration_ms"] for row in iterations(run, variant))
