# SPDX-License-Identifier: Apache-2.0
"""Trials whose routing spreads the packets of one flow."""

from typing import Any

from roundabout.spec import TrialSpec
from roundabout.spec.routing import Routing
from roundabout.spec.topology import Topology
from tests.several_paths.fabrics import leaf_spine
from tests.trials import build_trial
from tests.two_phases import two_phases

DCQCN: dict[str, Any] = {"name": "dcqcn", "T_us": 55, "retransmission": "selective_repeat"}
UNMARKED = {**DCQCN, "ecn": {"Kmin_bytes": 10**8, "Kmax_bytes": 10**8 + 1, "Pmax": 1}}
POLICIES: tuple[dict[str, Any], ...] = (
    {"name": "spray"},
    {"name": "adaptive"},
    {"name": "flowlet", "gap_us": 5},
)
NSCC: dict[str, Any] = {"name": "nscc", "rto_min_us": 500}
LEARNING: tuple[dict[str, Any], ...] = ({"name": "bitmap"}, {"name": "reps"})
"""Policies whose senders learn of paths by ACKs of each packet."""
BYTES, ALONE_MS = 1_000_000, 1.0


def trial(topology: Topology, jobs: dict[str, list[str]], **fields: Any) -> TrialSpec:
    """Return a trial of jobs that each send a megabyte from their first worker to their second, in a ms."""
    fabric = topology.model_copy(update={"gpus_per_host": 16}).model_dump(mode="json", exclude={"name"})
    own = {
        "topology": topology.name,
        "topologies": {topology.name: fabric},
        "profiles": {"p": two_phases(0.1, BYTES, ALONE_MS, pattern="pipeline")},
        "jobs": {name: {"profile": "p", "workers": workers} for name, workers in jobs.items()},
        "transport": UNMARKED,
        "iterations": 1,
    }
    return build_trial(**own | fields)


def routed(routing: dict[str, Any], **sizes: int) -> Topology:
    return leaf_spine(**sizes, routing=Routing(**routing))
