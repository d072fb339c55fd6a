# SPDX-License-Identifier: Apache-2.0
"""What a trial takes from trials that ran before it: measured profiles, and the time-shifts that follow from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from analysis.reading.profiling import Alone, alone, profile_of
from analysis.statistics.phases import find
from roundabout.fluid import best_offsets, fluid_jobs, iteration_times, left_by_cross_traffic, steady_means_ms
from roundabout.spec import Profile, TrialSpec, Value
from roundabout.store import Run

SHIFT_ITERATIONS = 6
"""Over which a time-shift must hold. Measured periods are off by their error: longer, and jobs that fit slide apart."""

Found = Mapping[str, Alone]
"""By job, the trial in which it was alone."""


def given(run: Run, spec: TrialSpec, needs: Sequence[str]) -> dict[str, dict[str, Value]]:
    """The value of each field (job -> field) that jobs of `spec` take from the trials `needs`, which are their keys.

    Raises StoreError where such a trial is missing, or cannot tell.
    """
    fields = list(dict.fromkeys(field for job in spec.jobs.values() for field in job.takes))
    result: dict[str, dict[str, Value]] = {name: {} for name, job in spec.jobs.items() if job.takes}
    for field in fields:
        takers = {name: job.takes[field] for name, job in spec.jobs.items() if field in job.takes}
        found = {name: alone(run, name, needs, variant) for name, variant in takers.items()}
        for name, value in _WAYS[field](spec, found).items():
            result[name][field] = value
    return result


def _profiles(_: TrialSpec, found: Found) -> dict[str, Value]:
    return {name: Value(_measured(each), (each.trial,)) for name, each in found.items()}


def _measured(each: Alone) -> Profile:
    return profile_of(each, find(each.workers()), f"{each.job.profile.name[:55]}-measured")


def _time_shifts(spec: TrialSpec, found: Found) -> dict[str, Value]:
    """Where the fluid model finds the jobs to slow each other down least; others stay where they are."""
    measured = spec.given({name: {"profile": value} for name, value in _profiles(spec, found).items()})
    trials = tuple(each.trial for each in found.values())
    capacity, jobs = left_by_cross_traffic(spec), fluid_jobs(measured)
    staying = [job for name, job in jobs.items() if name not in found]
    moving = {name: replace(jobs[name], start_ms=spec.jobs[name].arrives_ms) for name in found}
    means_ms = partial(steady_means_ms, iterations=SHIFT_ITERATIONS)
    placed = best_offsets(list(moving.values()), capacity, staying, means_ms)
    shifts = {}
    for name, moved in zip(moving, placed, strict=True):
        (alone_ms, *_) = iteration_times([moved], capacity, 1)[0]
        shifts[name] = Value((moved.start_ms - spec.jobs[name].arrives_ms) % alone_ms, trials)
    return shifts


_WAYS: dict[str, Callable[[TrialSpec, Found], Mapping[str, Value]]] = {
    "profile": _profiles,
    "start_offset_ms": _time_shifts,
}
