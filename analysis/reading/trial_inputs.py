# SPDX-License-Identifier: Apache-2.0
"""Inputs of a trial from earlier trials.

Inputs are measured profiles, time-shifts that the flow-level model computes from profiles, and Cassini's timetables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from analysis.reading.cells import CellTrials
from analysis.reading.measured_profile import LoneJob, find_lone_job, profile_of
from analysis.statistics.phases import find_phases
from roundabout.models.cassini import timetables
from roundabout.models.fluid import (
    best_offsets,
    fluid_jobs,
    iteration_times,
    residual_of_loads,
    steady_means_ms,
    stretch_timetables,
)
from roundabout.spec import InputValue, Profile, TrialSpec
from roundabout.spec.cassini import Clock
from roundabout.store import Run

SHIFT_ITERATIONS = 6
"""Iterations over which a time-shift is evaluated. With more, errors of measured periods would let matching jobs drift.
"""

Found = Mapping[str, LoneJob]
"""The trial in which each job ran alone, by the job's name."""


def resolve_inputs(run: Run, spec: TrialSpec, depends_on: Sequence[str]) -> dict[str, dict[str, InputValue]]:
    """Return by job and field the values that jobs of `spec` take from the earlier trials with the keys `depends_on`.

    Raises StoreError if an earlier trial is missing or lacks the value, and CassiniError if no timetables follow.
    """
    fields = list(dict.fromkeys(field for job in spec.jobs.values() for field in job.inputs))
    result: dict[str, dict[str, InputValue]] = {name: {} for name, job in spec.jobs.items() if job.inputs}
    for field in fields:
        takers = {name: job.inputs[field] for name, job in spec.jobs.items() if field in job.inputs}
        found = {name: _lone_job(run, name, depends_on, variant) for name, variant in takers.items()}
        for name, value in _WAYS[field](spec, found).items():
            result[name][field] = value
    if spec.cassini:
        for name, values in _timetables(run, spec.with_inputs(result), depends_on).items():
            result.setdefault(name, {}).update(values)
    return result


def with_measured_profiles(run: Run, cells: Sequence[CellTrials]) -> TrialSpec:
    """Return a trial of the cells' jobs with the profiles measured for Cassini; with those given if none were measured.

    Raises StoreError if the measuring trials are missing, or lack a profile.
    """
    reported = {trial["trial"]: trial.get("given", {}) for trial in run.trials()}
    for cell in cells:
        variant = cell.spec.cassini and cell.spec.cassini.profiles
        if variant and cell.trials:
            fields = [each for job in reported[cell.trials[0]].values() for each in job.values()]
            depends_on = sorted({key for each in fields for key in each["trials"]})
            return _measured_spec(
                cell.spec, {name: _lone_job(run, name, depends_on, variant) for name in cell.spec.jobs}
            )
    return cells[0].spec


def _lone_job(run: Run, job: str, depends_on: Sequence[str], variant: str | None) -> LoneJob:
    """Return the trial in which a job ran alone. Trials that take inputs from a disturbed one are disturbed too."""
    return find_lone_job(run, job, depends_on, variant, allow_disturbed=True)


def _measured_spec(spec: TrialSpec, found: Found) -> TrialSpec:
    return spec.with_inputs({name: {"profile": value} for name, value in _profiles(spec, found).items()})


def _profiles(_: TrialSpec, found: Found) -> dict[str, InputValue]:
    return {name: InputValue(_measured(each), (each.trial,)) for name, each in found.items()}


def _measured(each: LoneJob) -> Profile:
    return profile_of(each, find_phases(each.workers()), f"{each.job.profile.name[:55]}-measured")


def _time_shifts(spec: TrialSpec, found: Found) -> dict[str, InputValue]:
    """Return the shifts at which the flow-level model finds the least mutual slowdown; other jobs stay unshifted."""
    measured = _measured_spec(spec, found)
    trials = tuple(each.trial for each in found.values())
    capacity, jobs = residual_of_loads(spec), fluid_jobs(measured)
    staying = [job for name, job in jobs.items() if name not in found]
    moving = {name: replace(jobs[name], start_ms=spec.jobs[name].arrives_ms) for name in found}
    means_ms = partial(steady_means_ms, iterations=SHIFT_ITERATIONS)
    placed = best_offsets(list(moving.values()), capacity, staying, means_ms)
    shifts = {}
    for name, moved in zip(moving, placed, strict=True):
        (alone_ms, *_) = iteration_times([moved], capacity, 1)[0]
        shifts[name] = InputValue((moved.start_ms - spec.jobs[name].arrives_ms) % alone_ms, trials)
    return shifts


def _timetables(run: Run, spec: TrialSpec, depends_on: Sequence[str]) -> dict[str, dict[str, InputValue]]:
    """Return each job's timetable, as far as its clock is right; if jobs cannot keep them, only their first instants.

    Given timetables are held as they are. Others follow from measured profiles of the trials; without any trial, from
    given ones.
    """
    assert spec.cassini
    if spec.cassini.timetables:
        return {name: {"timetable": InputValue(each, ())} for name, each in spec.cassini.timetables.items()}
    variant, clocks = spec.cassini.profiles, spec.cassini.clocks
    found = {name: _lone_job(run, name, depends_on, variant) for name in spec.jobs} if variant else {}
    measured = _measured_spec(spec, found)
    trials, wanted = tuple(each.trial for each in found.values()), timetables(measured)
    held = stretch_timetables(measured, wanted)
    reported = {name: each.as_kept_by(clocks.get(name, Clock())) for name, each in (held or wanted).items()}
    if held:
        holds = {"holds": spec.cassini.held}
        return {
            name: {"timetable": InputValue(each.model_copy(update=holds), trials)} for name, each in reported.items()
        }
    return {
        name: {"start_offset_ms": InputValue(each.early_ms(spec.jobs[name].arrives_ms), trials)}
        for name, each in reported.items()
    }


_WAYS: dict[str, Callable[[TrialSpec, Found], Mapping[str, InputValue]]] = {
    "profile": _profiles,
    "start_offset_ms": _time_shifts,
}
