# SPDX-License-Identifier: Apache-2.0
"""Trials on a small leaf-spine, for the packet-level and the flow-level model."""

from typing import Any

from roundabout.spec import TrialSpec
from roundabout.spec.topology import Topology
from tests.packets.comparisons.flow_level import build, profile
from tests.several_paths.fabrics import leaf_spine

SIZE, SHARE, COMPUTE_MS = 20_000_000, 0.8, 10.0
RAILS_SIZE = 8_000_000


def build_leaf_spine(routing: dict[str, Any], transport: str, flows: int = 1) -> TrialSpec:
    """Return two jobs between two leaves, each of which asks for 0.8 of a cable. Two spines join the leaves."""
    return _build("leaf-spine", transport, flows, topologies={"leaf-spine": _topology(routing)})


def build_crossing_ring(seed: int) -> TrialSpec:
    """Return a ring of four workers each of whose hops crosses the spines, with 0.8 of a cable."""
    jobs = {"j0": {"profile": "p", "workers": ["s0", "s2", "s1", "s3"]}}
    profiles, topologies = {"p": profile("ring", SIZE, SHARE, COMPUTE_MS)}, {"leaf-spine": _topology({"name": "ecmp"})}
    routing = {"name": "ecmp", "seed": seed}
    return build("leaf-spine", jobs, profiles, "dcqcn", topologies=topologies, routing=routing)


def build_rails(topology: Topology, workers: list[str], pattern: str, flows: int, share: float) -> TrialSpec:
    """Return a trial of one job on hosts with several NICs, which asks for `share` of one link."""
    fabric = topology.model_dump(mode="json", by_alias=True, exclude={"name"})
    jobs = {"j": {"profile": "p", "workers": workers, "flows": flows}}
    profiles = {"p": profile(pattern, RAILS_SIZE, share, 1.0)}
    return build("rails", jobs, profiles, "dctcp", topologies={"rails": fabric})


def _topology(routing: dict[str, Any]) -> dict[str, Any]:
    return leaf_spine().model_dump(mode="json", by_alias=True, exclude={"name", "routing"}) | {"routing": routing}


def build_dumbbell(transport: str) -> TrialSpec:
    """Return the same jobs on a dumbbell, where they share both directions of its link."""
    return _build("dumbbell-2x2", transport, 1)


def _build(topology: str, transport: str, flows: int, **fields: Any) -> TrialSpec:
    jobs = {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"], "flows": flows} for k in range(2)}
    return build(topology, jobs, {"p": profile("ring", SIZE, SHARE, COMPUTE_MS)}, transport, **fields)
