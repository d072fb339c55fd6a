# SPDX-License-Identifier: Apache-2.0
"""A trial that is played until all of its jobs are in a steady state."""

from collections.abc import Mapping, Sequence

from roundabout.models.packets.engine import Engine, StopCheck
from roundabout.models.packets.jobs import AddedJob
from roundabout.models.packets.steady_state import Counts, Progress, Skipped, find_groups, find_steady_state
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.spec import TrialSpec

CHECKS = 32
"""Checks in the shortest iteration. The fewer, the longer a trial is played on after its steady state was reached."""


def play_until_steady(
    engine: Engine, spec: TrialSpec, jobs: Mapping[str, AddedJob], sample_ps: int, is_stopped: StopCheck
) -> dict[str, Skipped]:
    """Play a trial until its jobs end, or until each group of jobs is in a steady state.

    Return what is skipped of each job, or nothing if no iteration is. Samples are taken each `sample_ps`. Raises
    EngineError if it is stopped, and StuckError.
    """
    groups = [_Group(engine, spec, {name: jobs[name] for name in names}) for names in find_groups(spec)]
    step_ps = round(min(job.profile.alone_ms for job in spec.jobs.values()) * PS_PER_MS / CHECKS)
    until_ps = 0
    while engine.running:
        until_ps += step_ps
        engine.run(until_ps, is_stopped=is_stopped)
        if until_ps - engine.now_ps > step_ps + sample_ps:  # even samples have ended, as in a deadlock
            engine.run(is_stopped=is_stopped)
        advanced = [group.has_advanced() for group in groups]
        if any(advanced):
            found = {name: each for group in groups for name, each in group.skipped.items()}
            if found.keys() == jobs.keys() and any(each.skipped for each in found.values()):
                return found
    return {}


class _Group:
    """A group of jobs, with their counts at the end of each iteration that all of them have completed."""

    def __init__(self, engine: Engine, spec: TrialSpec, jobs: Mapping[str, AddedJob]) -> None:
        self._engine, self._spec, self._jobs = engine, spec, jobs
        self._counts: dict[str, list[Counts]] = {name: [] for name in jobs}
        self._completed = 0
        self.skipped: dict[str, Skipped] = {}

    def has_advanced(self) -> bool:
        """Return True if all jobs have completed another iteration, after which `skipped` is renewed."""
        completed = min(self._engine.completed(job.number) for job in self._jobs.values())
        if completed == self._completed:
            return False
        for name, job in self._jobs.items():
            self._counts[name] += [self._count(list(job.pairs.values()))] * (completed - self._completed)
        self._completed = completed
        progress = {
            name: Progress(self._engine.iterations(job.number), self._counts[name]) for name, job in self._jobs.items()
        }
        self.skipped = find_steady_state(self._spec, list(self._jobs), progress) or {}
        return True

    def _count(self, pairs: Sequence[int]) -> Counts:
        results = [self._engine.pair_result(pair) for pair in pairs]
        return Counts(*(sum(getattr(each, name) for each in results) for name in Counts._fields))
