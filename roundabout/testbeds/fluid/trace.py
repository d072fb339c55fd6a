# SPDX-License-Identifier: Apache-2.0
"""What flowed where in the course of a trial, as cumulative bytes; rates are constant between events."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roundabout.fluid import Course, Direction, capacities
from roundabout.spec import TrialSpec

Floats = npt.NDArray[np.float64]
Worker = tuple[int, int]
"""A job's place among the trial's, and a worker's in its job."""


@dataclass(frozen=True)
class Trace:
    """Cumulative bytes at the events `at_ms`: on each direction of a link, and sent and received by each worker."""

    at_ms: Floats
    carried: Mapping[Direction, Floats]
    sent: Mapping[Worker, Floats]
    received: Mapping[Worker, Floats]

    def until(self, ms: Floats, counted: Floats | None) -> Floats:
        """What was counted until these instants; none where nothing ever was."""
        return np.zeros(len(ms)) if counted is None else np.interp(ms, self.at_ms, counted)


def traced(spec: TrialSpec, course: Course, left: Mapping[Direction, float]) -> Trace:
    """Let the course go, and count. Cross traffic flows all the time, at what it does not leave to jobs."""
    at_ms = [0.0]
    carried: defaultdict[Direction, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    sent: defaultdict[Worker, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    received: defaultdict[Worker, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for event, interval in enumerate(course, start=1):
        at_ms.append(interval.end_ms)
        for job, stream, rate in interval.rates:
            size = rate * (interval.end_ms - interval.begin_ms)
            sent[job, stream.sender][event] += size
            received[job, stream.receiver][event] += size
            for edge in stream.path:
                carried[edge][event] += size
    at = np.array(at_ms)

    def cumulative(gained: Mapping[int, float]) -> Floats:
        steps = np.zeros(len(at))
        steps[list(gained)] = list(gained.values())
        return np.cumsum(steps)

    cross = {edge: (whole - left[edge]) * at for edge, whole in capacities(spec.topology.links).items()}
    return Trace(
        at,
        {edge: cumulative(carried.get(edge, {})) + crossing for edge, crossing in cross.items()},
        {worker: cumulative(gained) for worker, gained in sent.items()},
        {worker: cumulative(gained) for worker, gained in received.items()},
    )
