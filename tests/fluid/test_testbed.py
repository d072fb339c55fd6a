# SPDX-License-Identifier: Apache-2.0
"""`--testbed fluid`: its trials are the limits of the model. What it shares with packets is in tests/testbeds."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.quantities import CachedReading
from roundabout.models.fluid import fluid_limits
from roundabout.spec import Experiment, load_experiment
from roundabout.spec.assembly.overrides import overrides_from_values
from roundabout.store import Run
from tests.computed_runs import RUNNER

pytestmark = pytest.mark.unit

LOADED = """
name: loaded
about: A ring beside cross traffic
topology: configuration-b
jobs: {dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
transport: {name: dcqcn}
iterations: 5
repetitions: 2
cross_traffic: {cross: {kind: burst, volumes: exact, from: s2, to: [s0]}}
factors:
  variant:
    drawn: {}
    even: {cross_traffic: {cross: {kind: iperf}}}
  load_gbps: [0, 11, 23.5]
"""


def run(experiment: Experiment, folder: Path) -> Run:
    return RUNNER.start(experiment, experiment.name, folder)


@pytest.fixture(scope="module")
def flagship(tmp_path_factory: pytest.TempPathFactory) -> Run:
    only = overrides_from_values({"only": ["fig-1"]})
    return run(load_experiment("unfair-vgg19", changes=only), tmp_path_factory.mktemp("fluid"))


def medians(run: Run, variant: str) -> list[float]:
    rows = run.table("iterations").to_pylist()
    jobs = ("j1", "j2")
    return [
        float(np.median([r["iteration_ms"] for r in rows if (r["variant"], r["job"]) == (variant, j)])) for j in jobs
    ]


def test_the_fluid_testbed_reproduces_the_fluid_limits(flagship: Run) -> None:
    limits = fluid_limits(load_experiment("unfair-vgg19").cells[1].spec)
    assert medians(flagship, "alone") == pytest.approx([limit.alone_ms for limit in limits.values()], rel=1e-3)
    assert medians(flagship, "fair") == pytest.approx([limit.fair_ms for limit in limits.values()], rel=1e-3)
    assert medians(flagship, "unfair") == medians(flagship, "fair")  # it has no transports


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "loaded.yaml").write_text(LOADED)
    return run(load_experiment(folder / "loaded.yaml"), folder)


def of(found: Run, table: str, variant: str, load_gbps: float, repetition: int = 1) -> list[dict[str, Any]]:
    levels = json.dumps({"variant": variant, "load_gbps": load_gbps})
    rows = found.table(table).to_pylist()
    return [row for row in rows if (row["levels"], row["repetition"]) == (levels, repetition)]


def test_only_what_flows_vary_is_run_again(loaded: Run, flagship: Run) -> None:
    runs = Counter((trial["variant"], json.loads(trial["levels"])["load_gbps"]) for trial in loaded.trials())
    assert runs == {("drawn", 0): 1, ("drawn", 11): 2, ("drawn", 23.5): 2} | {
        ("even", load): 1 for load in (0, 11, 23.5)
    }
    first, second = ([row["iteration_ms"] for row in of(loaded, "iterations", "drawn", 11, each)] for each in (1, 2))
    assert first != second
    assert CachedReading(flagship).is_exact and not CachedReading(loaded).is_exact


def test_cross_traffic_takes_its_load_and_may_leave_nothing(loaded: Run) -> None:
    invalid = [trial for trial in loaded.trials() if not trial["valid"]]
    assert {(trial["variant"], json.loads(trial["levels"])["load_gbps"]) for trial in invalid} == {
        ("drawn", 23.5),
        ("even", 23.5),
    }
    assert all("leaves" in trial["reason"] and trial["attempt"] == 1 for trial in invalid)
    [row] = of(loaded, "cross_traffic", "even", 11)
    assert (row["asked_gbps"], row["offered_gbps"]) == (11, pytest.approx(11))
    assert row["achieved_gbps"] == pytest.approx(11)
