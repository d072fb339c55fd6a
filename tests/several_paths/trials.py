# SPDX-License-Identifier: Apache-2.0
"""Trials on a small leaf-spine, for the packet-level and the flow-level model."""

from datetime import UTC, datetime
from typing import Any

from roundabout.plan import PlannedTrial
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Topology
from roundabout.spec.trainers.ddp import Trainer as Ddp
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import load_calibration
from roundabout.testbeds.lab.lifecycle.lab_record import LabRecord
from tests.packets.comparisons.flow_level import build, profile
from tests.several_paths.fabrics import leaf_spine

SIZE, SHARE, COMPUTE_MS = 20_000_000, 0.8, 10.0
RAILS_SIZE = 8_000_000


def build_leaf_spine(routing: dict[str, Any], transport: str, flows: int = 1) -> TrialSpec:
    """Return two jobs between two leaves, each of which requires 0.8 of a cable. Two spines join the leaves."""
    return _build("leaf-spine", transport, flows, topologies={"leaf-spine": _topology(routing)})


def build_crossing_ring(seed: int) -> TrialSpec:
    """Return a ring of four workers each of whose hops crosses the spines, with 0.8 of a cable."""
    jobs = {"j0": {"profile": "p", "workers": ["s0", "s2", "s1", "s3"]}}
    profiles, topologies = {"p": profile("ring", SIZE, SHARE, COMPUTE_MS)}, {"leaf-spine": _topology({"name": "ecmp"})}
    routing = {"name": "ecmp", "seed": seed}
    return build("leaf-spine", jobs, profiles, "dcqcn", topologies=topologies, routing=routing)


def build_rails(
    topology: Topology, workers: list[str], pattern: str, flows: int, share: float, **fields: Any
) -> TrialSpec:
    """Return a trial of one job on hosts with several NICs, which requires `share` of one link."""
    fabric = topology.model_dump(mode="json", by_alias=True, exclude={"name"})
    jobs = {"j": {"profile": "p", "workers": workers, "flows": flows}}
    profiles = {"p": profile(pattern, RAILS_SIZE, share, 1.0)}
    return build("rails", jobs, profiles, "dctcp", topologies={"rails": fabric}, **fields)


def _topology(routing: dict[str, Any]) -> dict[str, Any]:
    return leaf_spine().model_dump(mode="json", by_alias=True, exclude={"name", "routing"}) | {"routing": routing}


def build_dumbbell(transport: str) -> TrialSpec:
    """Return the same jobs on a dumbbell, where they share both directions of its link."""
    return _build("dumbbell-2x2", transport, 1)


def _build(topology: str, transport: str, flows: int, **fields: Any) -> TrialSpec:
    jobs = {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"], "flows": flows} for k in range(2)}
    return build(topology, jobs, {"p": profile("ring", SIZE, SHARE, COMPUTE_MS)}, transport, **fields)


def planned(spec: TrialSpec) -> PlannedTrial:
    """Return a trial of a plan."""
    return PlannedTrial("t", "base", {}, 1, None, spec, 1, (), 1.0)


def plan_lab(topology: Topology) -> Lab:
    """Return a lab that is not built."""
    calibration = load_calibration()
    made = datetime(2026, 11, 28, tzinfo=UTC)
    return Lab(LabRecord(name="t", state="up", created_utc=made, scale=100, calibration=calibration, topology=topology))


def trained_by_ddp(spec: TrialSpec, rule: str) -> TrialSpec:
    """Return the trial with another routing rule, and a trainer that chooses its ports itself."""
    topology = Topology.model_validate(spec.topology.model_dump() | {"routing": {"name": rule}})
    jobs = {name: job.model_copy(update={"trainer": Ddp(name="ddp", model="VGG19")}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"topology": topology, "jobs": jobs})
