# SPDX-License-Identifier: Apache-2.0
"""Load files of a trial: the flows that crossgen would send with the trial's seed."""

import json
import subprocess
from dataclasses import dataclass, replace

import numpy as np

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.models.fluid import Schedule
from roundabout.plan import PlannedTrial, expected_duration_s
from roundabout.runner.hosts.host_group import Scaling
from roundabout.runner.trial.cross_traffic import LEAD_MS, plan_arguments

CROSSGEN = "build/bin/crossgen"
RECORD = np.dtype([("start_ns", "<u8"), ("bytes", "<u8"), ("destination", "<u2"), ("class", "<u2")])
"""Binary format of a flow in a load file (docs/reference/load-file.md)."""


class LoadError(RoundaboutError):
    """Error for a load that cannot be planned, or that leaves jobs too little capacity."""


@dataclass(frozen=True)
class PlannedLoad:
    """The content of a load file: its total offered load in Gbit/s, and the schedule of its flows in the jobs' time."""

    offered_gbps: float
    schedule: Schedule


def plan_loads(trial: PlannedTrial, pace: Scaling) -> dict[str, PlannedLoad]:
    """Plan the load of each random cross traffic of the trial. Return loads by name. Raises LoadError."""
    drawn = [name for name, spec in trial.spec.cross_traffic.items() if spec.is_random]
    if not drawn:
        return {}
    lasting = replace(trial, expected_s=expected_duration_s(trial.spec))
    return {name: read_load(plan_arguments(pace, lasting, name)) for name in drawn}


def read_load(words: list[str]) -> PlannedLoad:
    """Run `crossgen plan` with these arguments, and read its load file. Raises LoadError."""
    done = subprocess.run([ROOT / CROSSGEN, "plan", *words, "--output", "-"], capture_output=True)
    if done.returncode != 0:
        raise LoadError(f"crossgen plan: {done.stderr.decode().strip()}")
    head, newline, _ = done.stdout.partition(b"\n")
    header = json.loads(head)
    flows = np.frombuffer(memoryview(done.stdout)[len(head) + len(newline) : -RECORD.itemsize], RECORD)
    schedule = Schedule(
        starts_ms=flows["start_ns"] / 1e6 - LEAD_MS,
        sizes=flows["bytes"].astype(float),
        receivers=flows["destination"],
        begins_ms=-LEAD_MS,
        ends_ms=header["duration_ns"] / 1e6 - LEAD_MS,
    )
    return PlannedLoad(header["plan"]["offered_gbps"], schedule)
