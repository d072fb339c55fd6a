# SPDX-License-Identifier: Apache-2.0
"""An experiment that checks advice: jobs that were observed alone share links, and hold the advised timetables."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.advice.advice import JobGroup, Verdict
from analysis.advice.errors import AdviceError
from analysis.advice.expected_slowdown import Schedule
from analysis.advice.observed_jobs import ObservedJob
from analysis.reading.measured_profile import LoneJob, find_lone_job
from analysis.statistics.phases import Estimate
from roundabout.models.fluid import ITERATIONS
from roundabout.spec import Profile
from roundabout.store import Run

GAIN = "speedup of mean iteration time, mean of jobs"
COMMON_FIELDS = frozenset({"tcp", "queue", "red_weight", "priority_queues", "dwrr"})
"""Fields of a trial, besides topology and jobs, that the experiment copies from the run's trials."""


def experiment(name: str, run: Run, jobs: Sequence[ObservedJob], groups: Sequence[JobGroup]) -> dict[str, Any]:
    """Return the content of an experiment's file that runs each group of jobs alone, shared, and shifted if advised.

    Jobs are played as in the run, and share links for as long as the slowest of them needs for `ITERATIONS`. Groups
    without advice, and groups that share no link in the run, are left out. Raises AdviceError if no group is left.
    """
    known = {job.job: find_lone_job(run, job.job) for job in jobs if job.found}
    advised = sorted((each for each in groups if each.outlook), key=lambda each: sorted(each.jobs))
    played = [each for each in advised if _share_a_link([known[job] for job in each.jobs])]
    if not played:
        raise AdviceError(f"{run.path}: found no jobs with advice that share a link there, expected some to play")
    periods_ms = {job.job: job.found.period_ms.value for job in jobs if job.found}
    levels = {"-".join(sorted(each.jobs)): _level(each, known, periods_ms, run) for each in played}
    unshifted = [level for level, overlay in levels.items() if "cassini" not in overlay]
    variants: dict[str, Any] = {"alone": {"one_job_at_a_time": True, "iterations": ITERATIONS}, "shared": {}}
    without = {variant: {**overlay, "cassini": None} for variant, overlay in variants.items()}
    shifted: dict[str, Any] = {"shifted": {}} if len(unshifted) < len(levels) else {}
    names = sorted({job for each in played for job in each.jobs})
    return {
        "schema": 1,
        "name": name,
        "about": "Jobs for which there was advice: alone, together, and held to the timetables that were advised",
        "source": f"advice from run {run.id}",
        "iterations": max(ITERATIONS, *(_iterations(each, periods_ms) for each in played)),
        "profiles": {job: _profile(known[job]) for job in names},
        "factors": {"jobs-that-meet": levels, "variant": without | shifted},
        **({"exclude": [{"jobs-that-meet": unshifted, "variant": "shifted"}]} if shifted and unshifted else {}),
        "study": {"kind": "variants", "baseline": "shared"},
    }


def _share_a_link(jobs: Sequence[LoneJob]) -> bool:
    """Return True if all of these jobs cross one link of one topology."""
    crossed = [{hop.link.name for hop in each.spec.hops(each.name)} for each in jobs]
    return len({each.spec.topology.name for each in jobs}) == 1 and bool(set.intersection(*crossed))


def _level(met: JobGroup, known: dict[str, LoneJob], periods_ms: dict[str, float], run: Run) -> dict[str, Any]:
    assert met.outlook is not None
    first = known[met.jobs[0]].spec
    departs_ms = round(_lasts_ms(met, periods_ms), 3)
    level: dict[str, Any] = {
        "topology": first.topology.name,
        **first.model_dump(mode="json", include=set(COMMON_FIELDS), exclude_defaults=True),
        "jobs": {
            job: known[job].job.as_document | {"profile": job, "departs_ms": departs_ms} for job in sorted(met.jobs)
        },
        "expect": list(_expected(met, run)),
    }
    if schedule := _advised_schedule(met):
        level["cassini"] = {"timetables": {job: each.model_dump() for job, each in schedule.items()}}
    return level


def _advised_schedule(met: JobGroup) -> Schedule | None:
    """Return the schedule if jobs are to be held to it."""
    return met.outlook.schedule if met.outlook and met.verdict is Verdict.SHIFT else None


def _lasts_ms(met: JobGroup, periods_ms: dict[str, float]) -> float:
    assert met.outlook is not None
    return ITERATIONS * max(periods_ms[job] * cost.value for job, cost in met.outlook.cost.items())


def _iterations(met: JobGroup, periods_ms: dict[str, float]) -> int:
    """Return more iterations than any of its jobs has time for."""
    return math.ceil(_lasts_ms(met, periods_ms) / min(periods_ms[job] for job in met.jobs)) + 2


def _expected(met: JobGroup, run: Run) -> Iterator[dict[str, Any]]:
    """Yield the cost of sharing, and the gain of shifting over it."""
    assert met.outlook is not None
    for of, estimate in (("alone", met.outlook.cost_mean), ("shifted", met.outlook.gain_mean)):
        if estimate and (of == "alone" or _advised_schedule(met)):
            yield {"what": GAIN, "of": of, "over": "shared", **_limits(estimate, run), "basis": "predicted"}


def _limits(estimate: Estimate, run: Run) -> dict[str, Any]:
    return {
        "at_least": round(estimate.low, 3),
        "at_most": round(estimate.high, 3),
        "source": f"advice from run {run.id}: {estimate.value:.3f}",
    }


def _profile(job: LoneJob) -> dict[str, Any]:
    """Return the profile as it was played, rotated to begin with its longest quiet time, as found profiles do."""
    profile = job.job.profile
    first = max(range(len(profile.phases)), key=lambda place: _quiet_ms(profile, place))
    phases = (*profile.phases[first:], *profile.phases[:first])
    turned = profile.model_copy(update={"phases": phases}).model_dump(mode="json", exclude_none=True)
    return {field: value for field, value in turned.items() if field not in ("name", "schema")}


def _quiet_ms(profile: Profile, place: int) -> float:
    """Return how long nothing is sent from the beginning of one of its phases on; 0 if that is so before it, too."""
    phases = (*profile.phases[place:], *profile.phases[:place])
    if phases[-1].bytes is None:
        return 0.0
    quiet = 0.0
    for phase in phases:
        if phase.bytes is not None:
            break
        quiet += phase.duration_ms
    return quiet
