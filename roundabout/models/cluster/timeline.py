# SPDX-License-Identifier: Apache-2.0
"""The timeline of a trace under a scheduler: the placements of jobs over time, and the reasons."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from roundabout.models.cluster.demands import FlowPorts
from roundabout.models.cluster.state import Placement, Placements, Request
from roundabout.spec.cassini import Timetable

Why = Literal["arrival", "end", "lease", "epoch"]


@dataclass(frozen=True)
class Allocation:
    """A contiguous time of a job on one placement, with one timetable, priority and choice of paths.

    `left` is the number of iterations that remained at the begin, and `iterations` the number completed. `gpus` has the
    number of each worker's GPU in its host, where hosts have several NICs. `source_ports` are those of flows whose
    paths are chosen.
    """

    name: str
    job: str
    begins_s: float
    ends_s: float
    workers: Placement
    left: int
    iterations: int
    timetable: Timetable | None = None
    gpus: tuple[int, ...] = ()
    priority: int | None = None
    source_ports: FlowPorts = ()

    @property
    def has_traffic(self) -> bool:
        """Return True if the allocation causes traffic: it has several workers, and ends after they may begin."""
        early_ms = self.timetable.early_ms(1e3 * self.begins_s) if self.timetable else 0.0
        return len(self.workers) > 1 and 1e3 * self.begins_s + early_ms < 1e3 * self.ends_s


@dataclass(frozen=True)
class Decision:
    """A scheduler's answer, and the scores of its candidates if Cassini ranked them."""

    at_s: float
    why: Why
    job: str | None  # the job that arrived, ended or gave up its lease
    placements: Placements
    scores: tuple[float, ...] | None = None  # of the candidates that Cassini did not leave out
    migrated: tuple[str, ...] = ()  # the jobs of which `migrate` or `fragments` moved a worker


@dataclass(frozen=True)
class JobHistory:
    """A job from its arrival to its end; a move is a change of its workers while it runs."""

    name: str
    arrived_s: float
    started_s: float | None
    ended_s: float | None
    dedicated_s: float  # time in a cluster of its own, with the requested workers
    moves: int


@dataclass(frozen=True)
class Timeline:
    """The timeline of a trace: allocations, decisions and job histories, in seconds from the trace's start."""

    requests: tuple[Request, ...]
    allocations: tuple[Allocation, ...]
    decisions: tuple[Decision, ...]
    histories: tuple[JobHistory, ...]

    def window(self, from_s: float, lasts_s: float, starts_s: Callable[[str], Sequence[float]]) -> "Timeline":
        """Return the timeline with only the window's allocations, counted from its start; jobs and decisions stay.

        A job that ran before the window continues with its first iteration that begins in the window, so the offsets
        between jobs stay the same.

        Args:
            from_s: the start of the window.
            lasts_s: the length of the window.
            starts_s: returns the begins of an allocation's iterations, by its name.
        """
        until_s, allocations = from_s + lasts_s, []
        for allocation in self.allocations:
            begins_s = next((at for at in (allocation.begins_s, *starts_s(allocation.name)) if at >= from_s), math.inf)
            if begins_s < min(until_s, allocation.ends_s):
                allocations.append(_shift(allocation, begins_s, min(allocation.ends_s, until_s), from_s))
        return replace(self, allocations=tuple(allocations))

    def as_json(self, scheduler: str, *, cassini: bool) -> dict[str, Any]:
        """Return the content of timeline.json (docs/reference/cluster.md)."""
        return {
            "schema": 2,
            "scheduler": scheduler,
            "cassini": cassini,
            "requests": [asdict(request) for request in self.requests],
            "stints": [_allocation_json(each) for each in self.allocations],
            "decisions": [asdict(each) for each in _with_changes(self.decisions)],
            "jobs": [asdict(life) for life in self.histories],
        }


def _with_changes(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield the decisions with the placements of those jobs only that get other workers than before, or none."""
    before: Placements = {}
    for each in decisions:
        now = dict.fromkeys(before, ()) | dict(each.placements)
        yield replace(each, placements={job: workers for job, workers in now.items() if workers != before.get(job, ())})
        before = each.placements


def _shift(allocation: Allocation, begins_s: float, ends_s: float, by_s: float) -> Allocation:
    """Return a part of an allocation, shifted earlier."""
    table = allocation.timetable
    earlier = table and table.model_copy(update={"shift_ms": (table.shift_ms - 1e3 * by_s) % table.period_ms})
    return replace(allocation, begins_s=begins_s - by_s, ends_s=ends_s - by_s, timetable=earlier)


def _allocation_json(allocation: Allocation) -> dict[str, Any]:
    reported: Mapping[str, Any] = {
        name: value
        for name, value in asdict(allocation).items()
        if name not in ("timetable", "left", "source_ports") and (name not in ("gpus", "priority") or value)
    }
    table = allocation.timetable
    return {
        **reported,
        "shift_ms": table.shift_ms if table else None,
        "period_ms": table.period_ms if table else None,
    }
