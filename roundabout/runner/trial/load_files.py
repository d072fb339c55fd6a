# SPDX-License-Identifier: Apache-2.0
"""Load files of a trial: the flows that crossgen would send with the trial's seed, for testbeds that compute."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.plan import PlannedTrial, expected_duration_s
from roundabout.runner.hosts.host_group import Scaling
from roundabout.runner.trial.cross_traffic import plan_arguments

CROSSGEN = "build/bin/crossgen"
RECORD = np.dtype([("start_ns", "<u8"), ("bytes", "<u8"), ("destination", "<u2"), ("class", "<u2")])
"""Binary format of a flow in a load file (docs/reference/load-file.md)."""


class LoadError(RoundaboutError):
    """Error for a load that cannot be planned, or that leaves jobs too little capacity."""


@dataclass(frozen=True)
class LoadFile:
    """The content of a load file: its header, the summary of its flows, and an array of RECORD in order of starts."""

    header: dict[str, Any]
    summary: dict[str, Any]
    flows: npt.NDArray[np.void]


def draw_loads(trial: PlannedTrial, pace: Scaling) -> dict[str, LoadFile]:
    """Return the load file of each random cross traffic of the trial, by name. Raises LoadError."""
    drawn = [name for name, spec in trial.spec.cross_traffic.items() if spec.is_random]
    if not drawn:
        return {}
    lasting = replace(trial, expected_s=expected_duration_s(trial.spec))
    return {name: draw_load(plan_arguments(pace, lasting, name)) for name in drawn}


def draw_load(words: Sequence[str]) -> LoadFile:
    """Run `crossgen plan` with these arguments, and return its load file. Raises LoadError."""
    argv = [str(ROOT / CROSSGEN), "plan", *words, "--json", "--output", "-"]
    try:
        done = subprocess.run(argv, capture_output=True)
    except OSError as error:
        raise LoadError(f"crossgen plan: cannot start {CROSSGEN}: {error.strerror}", "build it: `make`") from error
    if done.returncode != 0:
        raise LoadError(f"crossgen plan: {done.stderr.decode().strip()}")
    head, newline, _ = done.stdout.partition(b"\n")
    flows = np.frombuffer(memoryview(done.stdout)[len(head) + len(newline) : -RECORD.itemsize], RECORD)
    return LoadFile(json.loads(head), json.loads(done.stderr.splitlines()[-1]), flows)
