# SPDX-License-Identifier: Apache-2.0
"""Load files of a trial: the flows that crossgen would send with the trial's seed."""

from dataclasses import dataclass

from roundabout.models.fluid import Schedule
from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.host_group import Scaling
from roundabout.runner.trial.cross_traffic import LEAD_MS
from roundabout.runner.trial.load_files import LoadFile, draw_load, draw_loads


@dataclass(frozen=True)
class PlannedLoad:
    """The content of a load file: its total offered load in Gbit/s, and the schedule of its flows in the jobs' time."""

    offered_gbps: float
    schedule: Schedule


def plan_loads(trial: PlannedTrial, pace: Scaling) -> dict[str, PlannedLoad]:
    """Plan the load of each random cross traffic of the trial. Return loads by name. Raises LoadError."""
    return {name: _planned(load) for name, load in draw_loads(trial, pace).items()}


def read_load(words: list[str]) -> PlannedLoad:
    """Run `crossgen plan` with these arguments, and read its load file. Raises LoadError."""
    return _planned(draw_load(words))


def _planned(load: LoadFile) -> PlannedLoad:
    flows = load.flows
    schedule = Schedule(
        starts_ms=flows["start_ns"] / 1e6 - LEAD_MS,
        sizes=flows["bytes"].astype(float),
        receivers=flows["destination"],
        begins_ms=-LEAD_MS,
        ends_ms=load.header["duration_ns"] / 1e6 - LEAD_MS,
    )
    return PlannedLoad(load.header["plan"]["offered_gbps"], schedule)
