# SPDX-License-Identifier: Apache-2.0
"""What flowed where in the course of a trial, as cumulative bytes; rates are constant between events."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roundabout.fluid import Course, Direction, Floats, Left, capacities
from roundabout.spec import TrialSpec
from roundabout.testbeds.fluid.loads import Load

Worker = tuple[int, int]
"""A job's place among the trial's, and a worker's in its job."""


@dataclass(frozen=True)
class Trace:
    """Cumulative bytes of jobs at the events `at_ms`: by direction of a link, and sent and received by each worker.

    `whole` is what a direction carries, bytes/ms, and `left` what cross traffic leaves of it, whose load files, by its
    name, are `loads`.
    """

    at_ms: Floats
    jobs: Mapping[Direction, Floats]
    sent: Mapping[Worker, Floats]
    received: Mapping[Worker, Floats]
    whole: Mapping[Direction, float]
    left: Left
    loads: Mapping[str, Load]

    def until(self, ms: Floats, counted: Floats | None) -> Floats:
        """What was counted until these instants; none where nothing ever was."""
        return np.zeros(len(ms)) if counted is None else np.interp(ms, self.at_ms, counted)

    def crossed(self, ms: Floats, edge: Direction) -> Floats:
        """What a direction of a link carried of cross traffic until these instants, from the start to the end."""
        within = np.minimum(ms, self.at_ms[-1])
        crossed: Floats = self.whole[edge] * within - self.left.until(within, edge)
        return crossed

    def carried(self, ms: Floats, edge: Direction) -> Floats:
        """What it carried in all."""
        return self.until(ms, self.jobs.get(edge)) + self.crossed(ms, edge)


def traced(spec: TrialSpec, course: Course, loads: Mapping[str, Load]) -> Trace:
    """Let the course go, and count."""
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

    return Trace(
        at,
        {edge: cumulative(gained) for edge, gained in carried.items()},
        {worker: cumulative(gained) for worker, gained in sent.items()},
        {worker: cumulative(gained) for worker, gained in received.items()},
        capacities(spec.topology.links),
        course.left,
        loads,
    )
