# SPDX-License-Identifier: Apache-2.0
"""The report's table of cables between switches, on a run of the flow-level model."""

from pathlib import Path

import pytest

from analysis.reading.cells import cells_of
from analysis.reading.congestion.cable_use import cable_uses
from analysis.render.cables import cables_of
from roundabout import build_experiment, run_experiment
from roundabout.spec import TrialSpec
from roundabout.store import Run
from tests.packets.comparisons.flow_level import profile
from tests.several_paths.fabrics import leaf_spine
from tests.several_paths.trials import COMPUTE_MS, SHARE, SIZE

pytestmark = pytest.mark.unit


def compute_run(folder: Path, spines: int) -> Run:
    """Return a computed run of two jobs on a leaf-spine, whose flows meet on a spine."""
    topology = leaf_spine(spines=spines).model_dump(mode="json", by_alias=True, exclude={"name", "routing"})
    fields = {
        "name": "cables",
        "about": "cables",
        "topology": "fabric",
        "topologies": {"fabric": topology | {"routing": {"name": "ecmp", "seed": 2}}},
        "profiles": {"p": profile("ring", SIZE, SHARE, COMPUTE_MS)},
        "jobs": {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"], "jitter": 0} for k in range(2)},
        "iterations": 20,
        "transport": {"name": "dcqcn"},
    }
    return run_experiment(build_experiment(fields), testbed="fluid", runs=folder)


def places(spec: TrialSpec, job: str) -> set[tuple[str, str]]:
    """Return the links that a job crosses, each with its receiver."""
    return {(hop.link.name, hop.receiver) for hop in spec.hops(job)}


def test_a_cable_has_the_jobs_of_the_plan_and_what_it_carried(tmp_path: Path) -> None:
    run = compute_run(tmp_path, spines=2)
    (cell,) = cells_of(run)
    uses = {(use.cable, use.towards): use for use in cable_uses(run, [cell])}
    crossed = {place for job in cell.spec.jobs for place in places(cell.spec, job)}
    assert set(uses) == {place for place in crossed if place[1] not in cell.spec.topology.hosts and "-" in place[0]}
    for place, use in uses.items():
        on_it = [
            job for job in cell.spec.jobs if place in {(hop.link.name, hop.receiver) for hop in cell.spec.hops(job)}
        ]
        assert list(use.jobs) == on_it
        # An iteration sends 20 MB on each route, in some 17 ms.
        assert use.gbps == pytest.approx(len(on_it) * 9, rel=0.2)
    assert "Cables between switches" in cables_of(run, [cell])


def test_a_tree_has_no_such_table(tmp_path: Path) -> None:
    run = compute_run(tmp_path, spines=1)
    assert cables_of(run, cells_of(run)) == ""
