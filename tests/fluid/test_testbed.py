# SPDX-License-Identifier: Apache-2.0
"""`--testbed fluid`: the model's own limits come out as tables, and nobody takes them for a measurement."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.compare import CompareError, compare
from roundabout import testbeds
from roundabout.fluid import fluid_limits
from roundabout.runner.run import Runner
from roundabout.spec import Experiment, load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.facility import FluidFacility

LOADED = """
name: loaded
about: A ring beside cross traffic
topology: configuration-b
jobs: {dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
transport: {name: dcqcn}
iterations: 5
repetitions: 5
cross_traffic: {cross: {kind: consistent, from: s2, to: [s0]}}
factors: {load_gbps: [0, 11, 23.5]}
"""


class Silent:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def run(experiment: Experiment, folder: Path) -> Run:
    observer: Any = Silent()
    return Runner(FluidFacility(), observer, undo).start(experiment, experiment.name, folder)


@pytest.fixture(scope="module")
def flagship(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(load_experiment("unfair-vgg19"), tmp_path_factory.mktemp("fluid"))


def medians(run: Run, variant: str) -> list[float]:
    rows = run.table("iterations").to_pylist()
    jobs = ("j1", "j2")
    return [
        float(np.median([r["iteration_ms"] for r in rows if (r["variant"], r["job"]) == (variant, j)])) for j in jobs
    ]


def test_it_takes_what_the_limits_say(flagship: Run) -> None:
    limits = fluid_limits(load_experiment("unfair-vgg19").cells[1].spec)
    assert medians(flagship, "alone") == pytest.approx([limit.alone_ms for limit in limits.values()], rel=1e-3)
    assert medians(flagship, "fair") == pytest.approx([limit.fair_ms for limit in limits.values()], rel=1e-3)
    assert medians(flagship, "unfair") == medians(flagship, "fair")  # it knows no transports


def test_each_trial_is_run_once_without_the_machine(flagship: Run) -> None:
    assert [trial["repetition"] for trial in flagship.trials()] == [1] * 4
    assert not (flagship.path.parents[1] / "state").exists()


def test_counters_add_up_to_what_workers_sent(flagship: Run) -> None:
    [trial] = [trial["trial"] for trial in flagship.trials() if trial["variant"] == "fair"]
    of = [row for row in flagship.table("iterations").to_pylist() if (row["trial"], row["host"]) == (trial, "s0")]
    counted = [row for row in flagship.table("counters").to_pylist() if (row["trial"], row["host"]) == (trial, "s0")]
    sent = sum(row["sent_bytes"] for row in of)
    assert counted[0]["tx_bytes"] == 0
    assert counted[-1]["tx_bytes"] == pytest.approx(sent, rel=1e-6)
    assert np.diff([row["controller_ns"] for row in counted]).tolist() == [10_000_000] * (len(counted) - 1)
    link = [row for row in flagship.table("queue").to_pylist() if (row["trial"], row["link"]) == (trial, "L1")]
    one_way = max(row["tx_bytes"] for row in link if row["towards"] == "tor1")
    assert one_way == pytest.approx(2 * sent, rel=1e-6)  # of both jobs


def test_cross_traffic_takes_its_load_and_may_leave_nothing(tmp_path: Path) -> None:
    path = tmp_path / "loaded.yaml"
    path.write_text(LOADED)
    found = run(load_experiment(path), tmp_path)
    by_load = {trial["levels"]: trial for trial in found.trials()}
    assert [trial["valid"] for trial in by_load.values()].count(False) == 1
    [starved] = [trial for trial in by_load.values() if not trial["valid"]]
    assert "leaves nothing to dnn" in starved["reason"] and starved["attempt"] == 1
    [row] = found.table("cross_traffic").to_pylist()
    assert (row["asked_gbps"], row["achieved_gbps"]) == (11, 11)
    crossing = [row for row in found.table("counters").to_pylist() if row["host"] == "s2" and "11" in row["levels"]]
    seconds = (crossing[-1]["controller_ns"] - crossing[0]["controller_ns"]) / 1e9
    assert crossing[-1]["tx_bytes"] * 8 / 1e9 / seconds == pytest.approx(11, rel=1e-6)


def test_it_is_stamped_and_never_compared_with_what_was_measured(flagship: Run, tmp_path: Path) -> None:
    assert flagship.manifest["testbed"]["fidelity"]["nature"] == "computed"
    assert isinstance(testbeds.facility(flagship.manifest["where"]), FluidFacility)
    measured = Run.create(
        tmp_path, "unfair-vgg19", flagship.manifest | {"testbed": {"kind": "lab", "emulated": True, "scale": 50}}
    )
    (measured.path / "trials").symlink_to(flagship.path / "trials")
    with pytest.raises(CompareError, match="is computed and .* is emulated"):
        compare(flagship, measured)
