# SPDX-License-Identifier: Apache-2.0
"""Jobs of each framework, small ones, that really train on CPUs in a real lab.

TRAINING_PYTHON, DEEPSPEED_PYTHON and HOROVOD_PYTHON name interpreters that have what they need; docs/how-to/training.md
says how one gets them. Where one has not, that framework's tests are skipped.
"""

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.reading.data import filter_rows
from roundabout.api import run_experiment
from roundabout.core.paths import ROOT
from roundabout.spec import load_experiment, load_profile
from roundabout.spec.trainers import MODELS
from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.proof]
ITERATIONS = 40
PYTORCH = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
DEEPSPEED = os.environ.get("DEEPSPEED_PYTHON", "/opt/torch/bin/python")
HOROVOD = os.environ.get("HOROVOD_PYTHON", "/opt/horovod/bin/python")
PROFILE = {
    "schema": 1,
    "name": "small",
    "model": "as each framework makes it",
    "phases": [
        {"name": "compute", "compute_ms": 100, "guess": "Of an accelerator. Effect: none here."},
        {"name": "send", "bytes": 200_000_000, "alone_ms": 40, "guess": "Enough to count. Effect: none here."},
    ],
}
FOUR = ["s0", "s1", "s2", "s3"]
TRAINERS: dict[str, dict[str, Any]] = {
    "ddp": {"name": "ddp", "python": PYTORCH},
    "dlrm": {"name": "dlrm", "python": PYTORCH},
    "horovod": {"name": "horovod", "python": HOROVOD},
    "data": {"name": "deepspeed", "python": DEEPSPEED, "parallel": "data"},
    "pipeline": {"name": "deepspeed", "python": DEEPSPEED},
    "tensor": {"name": "deepspeed", "python": DEEPSPEED, "parallel": "tensor"},
    "hybrid": {"name": "deepspeed", "python": DEEPSPEED, "parallel": "hybrid"},
}
WAYS = [f"{name}-{launch}" for name in TRAINERS for launch in ("direct", "torchrun")]


def there(way: str) -> bool:
    fields = TRAINERS[way.partition("-")[0]]
    probe = MODELS[fields["name"]].model_validate(fields).probe
    return Path(fields["python"]).exists() and probe is not None and subprocess.run(probe).returncode == 0


def variant(way: str) -> dict[str, Any]:
    name, _, launch = way.partition("-")
    job = {"trainer": {**TRAINERS[name], "launch": launch}}
    return {"jobs": {"j1": {**job, "workers": FOUR} if name == "hybrid" else job}}


def written(folder: Path, variants: dict[str, Any], profile: str = "small") -> Path:
    (folder / "profiles").mkdir()
    (folder / "profiles/small.yaml").write_text(yaml.safe_dump(PROFILE))
    experiment = {
        "schema": 1,
        "name": "frameworks",
        "about": "One job, trained by each framework",
        "topology": "dumbbell-2x2",
        "profile": profile,
        "jobs": {"j1": {"workers": ["s0", "s2"]}},
        "iterations": ITERATIONS,
        "transport": {"name": "cubic"},
        "factors": {"variant": variants},
    }
    (folder / "frameworks.yaml").write_text(json.dumps(experiment))
    return folder / "frameworks.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("frameworks")
    file = written(folder, {way: variant(way) for way in WAYS if there(way)})
    return run_experiment(load_experiment(file), runs=folder / "runs", quiet=True)


def iterations(run: Run, way: str) -> list[dict[str, Any]]:
    if not there(way):
        pytest.skip(f"{TRAINERS[way.partition('-')[0]]['python']} has not what {way} needs")
    return filter_rows(run.table("iterations"), variant=way).to_pylist()


def test_all_trials_are_valid(run):
    assert [trial for trial in run.trials() if not trial["valid"]] == []


@pytest.mark.parametrize("way", WAYS)
def test_workers_send_what_the_profile_says(run, way):
    """Of all workers: a part of a hybrid in its midst sends more. The first iterations make connections' windows."""
    rows = iterations(run, way)
    for rank in {row["rank"] for row in rows}:
        sent = [row["sent_bytes"] for row in rows if row["rank"] == rank]
        assert statistics.mean(sent) == pytest.approx(PROFILE["phases"][1]["bytes"], rel=0.015)


@pytest.mark.parametrize("way", WAYS)
def test_each_frameworks_training_loss_falls(run, way):
    rows = iterations(run, way)
    begin, end = (
        statistics.mean(row["loss"] for row in rows if row["iteration"] in which)
        for which in (range(15), range(ITERATIONS - 15, ITERATIONS))
    )
    assert end < begin


@pytest.mark.parametrize("name", ["ddp", "dlrm", "horovod", "data", "tensor"])
def test_computing_takes_as_long_as_the_profile_says(run, name):
    median_ms = statistics.median(row["compute_ms"] for row in iterations(run, f"{name}-direct"))
    assert median_ms == pytest.approx(PROFILE["phases"][0]["compute_ms"], rel=0.03)


def test_a_trained_job_can_be_profiled(tmp_path):
    if not there("ddp-direct"):
        pytest.skip(f"{PYTORCH} has no PyTorch")
    file = written(tmp_path, {"fair": variant("ddp-direct")}, "ddp-lab")
    call = [
        str(ROOT / ".venv/bin/roundabout"),
        "profile",
        "measure",
        f"{file}:j1",
        "--runs",
        str(tmp_path / "runs"),
        "--json",
    ]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["found"]["period_ms"]["value"] == pytest.approx(result["timed_ms"], rel=0.01)
    sent = sum(phase["bytes"]["value"] for phase in result["found"]["phases"])
    assert sent == pytest.approx(load_profile("ddp-lab").comm_bytes, rel=0.02)
