# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run: the speed of each job in each cell, relative to a baseline."""

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.statistics.intervals import Interval
from roundabout.spec.base import Level

ALONE = "the flow-level model without other jobs"
"""The baseline of runs that have none: each job with the links to itself, besides cross traffic."""
LOAD = "load_gbps"
"""The factor of a sweep over the load of cross traffic."""
ALL_JOBS = "all jobs"
"""The name in place of a job's where a figure is of all jobs of a cell together."""


@dataclass(frozen=True)
class JobSpeed:
    """The speed of a job in a cell, as a multiple of that under `baseline`, with its 95 % interval if it has one.

    A bound is the speed of a job that shares nothing, with which sharing is compared.
    """

    levels: Mapping[str, Level]
    job: str
    speed: float
    interval: Interval | None
    baseline: str
    is_bound: bool = False


def inverse_interval(interval: Interval | None) -> Interval | None:
    """Return the interval of 1 / x from that of a positive x."""
    return None if interval is None or interval[0] <= 0 else (1 / interval[1], 1 / interval[0])
