# SPDX-License-Identifier: Apache-2.0
"""Advice: which pairs may share a link, which groups should not, and which of some placements is the best."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from analysis.advice.expected_slowdown import Crossing, Outlook, compute_outlook
from analysis.advice.observed_jobs import MAX_TOGETHER, ObservedJob, Report, ignore_progress
from analysis.advice.senders import MAX_YAML_BYTES
from analysis.statistics.phases import SAME_RATE
from roundabout.models.cassini import (
    Candidate,
    CassiniError,
    PlacementRanking,
    ScoredCandidate,
    find_loop,
    rank_placements,
    shared_links,
    unify,
)
from roundabout.spec.errors import list_choices, quote_value, suggest
from roundabout.spec.reader.yaml_source import Content, load_yaml

WORTH = 1.02
"""Least mean gain (a ratio of iteration times) at which shifting is advised; the gain's whole interval must be above 1.
"""
LOSS = 0.98
"""Least gain (a ratio of iteration times) that each job must be expected to have; below it shifting is not advised."""
COST = 1.1
"""Largest cost (iteration time over that alone) that a job may have; jobs that exceed it should not share a link."""
MARGINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04)
"""Shares of an iteration by which phases are widened at both ends, so that late phases do not overlap; all are tried.
"""
SIMULATED = 3
"""Number of placements, the best by score, whose cost the flow-level model computes."""
MAX_JOBS = 8
"""Largest number of jobs for which all placements are enumerated; their number grows exponentially."""


class Verdict(Enum):
    """The advice for jobs that could share links."""

    SHIFT = "share, shifted"
    SHARE = "share as they are"
    APART = "keep apart"
    NONE = "no advice"


@dataclass(frozen=True)
class JobGroup:
    """Jobs that share links: the advice, its reason, and the outlook.

    `score` is None if no unified circle fits the jobs.
    """

    jobs: tuple[str, ...]
    verdict: Verdict
    why: str
    score: float | None = None
    outlook: Outlook | None = None


@dataclass(frozen=True)
class Placement:
    """A candidate placement: the jobs that cross each link.

    `job_groups` are the groups of jobs that share links. Jobs of two groups share none, so each group has its advice.

    An excluded candidate has a `reason` instead.
    """

    name: str
    crossing: Mapping[str, tuple[str, ...]]
    score: float | None
    job_groups: tuple[JobGroup, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Advice:
    """All advice, for links of `capacity_gbps`; `notes` name what qualifies the source's figures."""

    capacity_gbps: float
    jobs: tuple[ObservedJob, ...]
    pairs: tuple[JobGroup, ...]
    placements: tuple[Placement, ...]
    notes: tuple[str, ...] = ()

    @property
    def groups_to_separate(self) -> tuple[JobGroup, ...]:
        """Return the groups that should not share links."""
        of_placements = {met.jobs: met for each in self.placements for met in each.job_groups if len(met.jobs) > 2}
        return tuple(each for each in (*self.pairs, *of_placements.values()) if each.verdict is Verdict.APART)


Groups = dict[frozenset[frozenset[str]], JobGroup]
"""Groups with advice, by the sets of jobs that share a link."""


def advise(
    jobs: Sequence[ObservedJob],
    capacity_gbps: float,
    candidates: Sequence[Candidate],
    notes: Sequence[str] = (),
    report: Report = ignore_progress,
) -> Advice:
    """Return advice on all pairs of jobs and on the candidate placements. Candidates with unknown jobs are excluded.

    `report` is called with each step.
    """
    groups: Groups = {}
    for pair in itertools.combinations([each.job for each in jobs], 2):
        report(f"computing pair {len(groups) + 1}, {' and '.join(pair)}")
        groups[frozenset([frozenset(pair)])] = advise_group(jobs, {"link": pair}, capacity_gbps)
    pairs = tuple(groups.values())
    placements = tuple(_ranked(jobs, candidates, capacity_gbps, groups, report))
    return Advice(
        capacity_gbps, tuple(jobs), pairs, placements, (*notes, *(note for job in jobs for note in job.notes))
    )


def advise_group(jobs: Sequence[ObservedJob], crossing: Crossing, capacity_gbps: float) -> JobGroup:
    """Return advice on jobs that share links; `crossing` lists the jobs of each link. No advice if a job is unknown."""
    by_name = {each.job: each for each in jobs}
    names = tuple(dict.fromkeys(job for members in crossing.values() for job in members))
    unknown = [name for name in names if not by_name[name].found]
    if unknown:
        return JobGroup(names, Verdict.NONE, f"{unknown[0]}: {by_name[unknown[0]].reason}")
    candidate, choices = Candidate("", _tuples(crossing)), []
    why = "; ".join(_oversized_jobs([by_name[name] for name in names], capacity_gbps))
    try:
        choices = [_rank_candidates([candidate], by_name, capacity_gbps, margin).ranked[0] for margin in MARGINS]
    except CassiniError as error:
        why = "; ".join(filter(None, (why, f"{error.message}: no shift would last")))
    found = compute_outlook(by_name, crossing, capacity_gbps, choices)
    return _judge_group(names, choices[0] if choices else None, found, why)


def _oversized_jobs(jobs: Sequence[ObservedJob], capacity_gbps: float) -> Iterator[str]:
    """Yield the jobs whose demand exceeds a link."""
    for job in jobs:
        most = max(arc.gbps for arc in job.circle.arcs)
        if most > capacity_gbps * (1 + SAME_RATE):
            yield f"{job.job} requires {most:.1f} Gbit/s, more than the link has"


def _rank_candidates(
    candidates: Sequence[Candidate], jobs: Mapping[str, ObservedJob], capacity_gbps: float, margin: float = 0.0
) -> PlacementRanking:
    """Rank candidates by Algorithm 2, on equal links; `margin`, a share of iterations, widens phases."""
    known = {name: job.circle for name, job in jobs.items() if job.found}
    reach_ms = {name: margin * circle.iteration_ms for name, circle in known.items()}
    circles = {name: circle.widen(reach_ms[name], reach_ms[name]) for name, circle in known.items()}
    return rank_placements(candidates, circles, {link: capacity_gbps for each in candidates for link in each.crossing})


def _judge_group(names: tuple[str, ...], scored: ScoredCandidate | None, found: Outlook, why: str) -> JobGroup:
    score = scored.score if scored else None
    helps = found.gain_mean is not None and found.gain_mean.low > 1 and found.gain_mean.value >= WORTH
    fair = all(gain.low >= LOSS for gain in found.gain.values())
    cost = found.cost_shifted if helps and fair else found.cost
    slowest = max(cost, key=lambda job: cost[job].value)
    if cost[slowest].value >= COST:
        though = ", even shifted" if helps and fair else ""
        much = f"{slowest} takes {100 * (cost[slowest].value - 1):.0f} % longer than alone{though}"
        return JobGroup(names, Verdict.APART, "; ".join(filter(None, (much, why))), score, found)
    if helps and fair:
        return JobGroup(names, Verdict.SHIFT, why, score, found)
    worth = "a shift would gain too little" if scored else ""
    return JobGroup(names, Verdict.SHARE, "; ".join(filter(None, (worth, why))), score, found)


def _ranked(
    jobs: Sequence[ObservedJob],
    candidates: Sequence[Candidate],
    capacity_gbps: float,
    groups: Groups,
    report: Report,
) -> Iterator[Placement]:
    """Yield Algorithm 2's ranking with the advice on each group of jobs, `groups` or computed for the first placements.

    Excluded candidates come last.
    """
    known = {each.job: each for each in jobs if each.found}
    reasons = {each.name: _exclusion_reason(known, each) for each in candidates}
    kept = [each for each in candidates if not reasons[each.name]]
    ranked = _rank_candidates(kept, known, capacity_gbps).ranked if kept else ()
    for place, scored in enumerate(ranked):
        job_groups = []
        for crossing in split_by_jobs(shared_links(scored.candidate.crossing)):
            key = frozenset(map(frozenset, crossing.values()))
            if key not in groups and place < SIMULATED:
                report(f"computing placement {place + 1}, {scored.candidate.name}")
                groups[key] = advise_group(jobs, crossing, capacity_gbps)
            job_groups.append(groups.get(key) or _uncomputed_group(crossing))
        yield Placement(scored.candidate.name, scored.candidate.crossing, scored.score, tuple(job_groups))
    for candidate in candidates:
        if reasons[candidate.name]:
            yield Placement(candidate.name, candidate.crossing, None, reason=reasons[candidate.name])


def _uncomputed_group(crossing: Crossing) -> JobGroup:
    names = tuple(dict.fromkeys(job for members in crossing.values() for job in members))
    return JobGroup(
        names, Verdict.NONE, f"larger groups than pairs are computed for the best {SIMULATED} placements only"
    )


def split_by_jobs(crossing: Mapping[str, tuple[str, ...]]) -> list[dict[str, tuple[str, ...]]]:
    """Return the links in parts of which no two have a job in common."""
    parts: list[dict[str, tuple[str, ...]]] = []
    for link, members in crossing.items():
        joined = [part for part in parts if any({*members} & {*others} for others in part.values())]
        apart = [part for part in parts if part not in joined]
        parts = [*apart, {name: others for part in joined for name, others in part.items()} | {link: members}]
    return parts


def _exclusion_reason(jobs: Mapping[str, ObservedJob], candidate: Candidate) -> str:
    """Return the reason why Cassini cannot rank a placement, or an empty string."""
    if found := find_loop(candidate.crossing):
        return f"a loop: {' - '.join((*found, found[0]))}"
    for link, members in shared_links(candidate.crossing).items():
        if unknown := [job for job in members if job not in jobs]:
            return f"no advice for {unknown[0]}"
        if len(members) > MAX_TOGETHER:
            return f"{len(members)} jobs on {link}, expected {MAX_TOGETHER} at most"
        try:
            unify([jobs[job].circle for job in members])
        except CassiniError as error:
            return error.message
    return ""


def partitions(jobs: Sequence[ObservedJob], links: int) -> list[Candidate]:
    """Return every way to put the known jobs on at most `links` equal links; none for more than `MAX_JOBS` jobs."""
    names = [each.job for each in jobs if each.found]
    if not 1 < len(names) <= MAX_JOBS:
        return []
    found = (way for way in _partitions(names, links) if max(map(len, way)) <= MAX_TOGETHER)
    ways = sorted(found, key=len, reverse=True)  # of placements with one score, those that use more links come first
    return [
        Candidate(
            " | ".join(" ".join(group) for group in way),
            {f"L{place}": tuple(group) for place, group in enumerate(way, 1)},
        )
        for way in ways
    ]


def _partitions(names: Sequence[str], most: int) -> Iterator[list[list[str]]]:
    if not names:
        yield []
        return
    for way in _partitions(names[:-1], most):
        for place in range(len(way)):
            yield [[*group, names[-1]] if place == at else group for at, group in enumerate(way)]
        if len(way) < most:
            yield [*way, [names[-1]]]


def read_placements(path: Path, jobs: Sequence[ObservedJob]) -> list[Candidate]:
    """Return the placements in a YAML file, which lists for each name the jobs on each link. Raises SpecError."""
    content = load_yaml(path, MAX_YAML_BYTES, all_text=True)
    if not isinstance(content.root, Mapping) or not content.root:
        raise content.error((), quote_value(content.root), "placements by name")
    known = {each.job for each in jobs}
    return [Candidate(name, _crossing(content, name, links, known)) for name, links in content.root.items()]


def _crossing(content: Content, name: str, links: Any, known: set[str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(links, Mapping):
        raise content.error((name,), quote_value(links), "lists of jobs by link")
    for link, members in links.items():
        if not isinstance(members, list):
            raise content.error((name, link), quote_value(members), "a list of jobs")
        for place, job in enumerate(members):
            if not isinstance(job, str) or job not in known:
                expected = f"one of {list_choices(sorted(known))}"
                raise content.error((name, link, place), f"job {quote_value(job)}", expected, hint=suggest(job, known))
            if job in members[:place]:
                raise content.error((name, link, place), f"job {quote_value(job)} a second time", "each job once")
    return _tuples(links)


def _tuples(crossing: Mapping[Any, Sequence[Any]]) -> dict[str, tuple[str, ...]]:
    return {str(link): tuple(map(str, members)) for link, members in crossing.items()}
