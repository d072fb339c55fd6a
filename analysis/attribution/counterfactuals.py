# SPDX-License-Identifier: Apache-2.0
"""Counterfactuals: the same trial without one cause of delay."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from roundabout.models.fluid.mltcp import base_of
from roundabout.spec import TrialSpec
from roundabout.spec.job import ResolvedJob
from roundabout.spec.routing import Routing
from roundabout.spec.transports import Transport

Floats = npt.NDArray[np.float64]
Stretches = Mapping[str, tuple[float, ...]]
"""Factors of each job's computing times, one an iteration."""

Play = Callable[[TrialSpec, Mapping[str, Sequence[float]]], Mapping[str, Floats]]
"""Plays a trial by a model, and returns the times of each job's iterations, ms."""

Cause = Literal[
    "job",
    "cross traffic",
    "link events",
    "transport",
    "colliding paths",
    "time-shift agent",
    "slowest worker",
    "computing time",
    "own links",
    "unexplained",
]
"""Causes of delay, in the order of `docs/how-to/explain.md`."""
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Computing(NamedTuple):
    """The stretches of a trial: those of each job's slowest worker, and the means over its workers."""

    slowest: Stretches
    mean: Stretches


class Counterfactual(NamedTuple):
    """A trial without some causes of delay: its spec, the stretches of its jobs, and the model that plays it."""

    spec: TrialSpec
    stretches: Stretches
    play: Play


def without_events(spec: TrialSpec) -> TrialSpec:
    """Return the trial with links that keep their state."""
    return spec.model_copy(update={"events": (), "reroute_after_ms": None})


def with_fair_shares(spec: TrialSpec) -> TrialSpec:
    """Return the trial with jobs that share links evenly in the flow-level model: without MLTCP and queues' weights."""
    fair = _with_jobs(spec, lambda job: {"transport": _without_mltcp(job.transport)})
    return fair if fair.dwrr is None else fair.model_copy(update={"dwrr": None})


def over_all_paths(spec: TrialSpec) -> TrialSpec:
    """Return the trial with flows that are spread evenly over all shortest paths, so that none collide.

    A trial with one path for each flow, or whose packets are spread already, is unchanged.
    """
    topology = spec.topology
    if topology.is_tree or topology.routing is None or topology.spreads_packets or topology.routing.pxn:
        return spec
    return spec.model_copy(update={"topology": topology.with_routing(Routing(name="spray"))})


def without_agents(spec: TrialSpec) -> TrialSpec:
    """Return the trial with jobs whose iterations no time-shift agent delays. They begin when they did."""
    return _with_jobs(spec, _without_agent)


def _without_agent(job: ResolvedJob) -> dict[str, object]:
    held = job.held_timetable
    return {"timetable": held.model_copy(update={"holds": False})} if held else {}


def without_traffic(spec: TrialSpec, present: frozenset[str]) -> TrialSpec:
    """Return the trial with only those jobs and cross traffics whose names are `present`."""
    return spec.model_copy(
        update={
            "jobs": {name: job for name, job in spec.jobs.items() if name in present},
            "cross_traffic": {name: each for name, each in spec.cross_traffic.items() if name in present},
        }
    )


def _with_jobs(spec: TrialSpec, change: Callable[[ResolvedJob], Mapping[str, object]]) -> TrialSpec:
    """Return the trial with changed fields of its jobs; the same object if no field changes."""
    changed = {name: job.model_copy(update=dict(change(job))) for name, job in spec.jobs.items()}
    return spec if changed == spec.jobs else spec.model_copy(update={"jobs": changed})


def _without_mltcp(transport: Transport) -> Transport:
    base = base_of(transport)
    return transport if base == transport.name else Transport(name=base)
