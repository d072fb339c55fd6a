# SPDX-License-Identifier: Apache-2.0
"""Advice as tables, as a record for programs, and as a page."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.advice.advice import Advice, Meeting, Placement, Verdict
from analysis.advice.expected_slowdown import Outlook
from analysis.advice.observed_jobs import Observed
from analysis.render import page
from analysis.render.tables import Cell, Column, Table, Tone, plain
from analysis.statistics.phases import Estimate, Found
from roundabout.models.fluid import ITERATIONS

TONES = {Verdict.SHIFT: Tone.GOOD, Verdict.SHARE: Tone.UNKNOWN, Verdict.APART: Tone.BAD, Verdict.NONE: Tone.OPEN}
EXPECTED = (
    Column("score", ".3f"),
    Column("gain", ".2f"),
    Column("by\nchance", ".2f"),
    Column("cost", ".2f"),
    Column("advice", kind="words"),
)
"""Columns of what is expected of jobs that meet."""
EXPLAINED = (
    f"Expected by the fluid model, in the mean of {ITERATIONS} iterations: gain is what sharing takes from a common "
    "start over what it takes shifted (by chance: from any start), cost what it takes from a common start over alone."
)


def tables(advice: Advice) -> list[Table]:
    """Return tables of jobs, pairs, groups to separate, and placements, without empty ones."""
    groups = [each for each in advice.apart if len(each.jobs) > 2]
    found = [_jobs(advice.jobs), _pairs(advice.pairs, "Pairs")]
    if groups:
        found.append(_pairs(groups, "Groups that should not meet"))
    if advice.placements:
        found.append(_placements(advice.placements))
    return found


def _jobs(jobs: Sequence[Observed]) -> Table:
    columns = (
        Column("job", kind="names"),
        Column("period,\nms", ".1f"),
        Column("jitter,\nms", ".1f"),
        Column("like\nitself", ".2f"),
        Column("sends", kind="words"),
    )
    rows = [
        (
            Cell(each.job),
            *_certainty(each.found, each.jitter_ms),
            Cell(_sends(each.found) if each.found else f"no advice: {each.reason}"),
        )
        for each in jobs
    ]
    return Table(columns, plain(rows), "Jobs", empty="No jobs.")


def _certainty(found: Found | None, jitter_ms: float) -> tuple[Cell, Cell, Cell]:
    if found is None:
        return Cell(), Cell(), Cell()
    period = found.period_ms
    return Cell(period.value, (period.low, period.high)), Cell(jitter_ms), Cell(found.likeness)


def _sends(found: Found) -> str:
    """Describe each phase that sends: begin, end, and bytes."""
    return ", ".join(
        f"{phase.begin_ms.value:.0f}-{phase.begin_ms.value + phase.duration_ms.value:.0f} ms "
        f"(±{_off(phase.duration_ms):.1f}) at {phase.gbps.value:.1f} Gbit/s (±{_off(phase.gbps):.1f})"
        for phase in found.phases
        if phase.sends
    )


def _off(estimate: Estimate) -> float:
    return max(estimate.value - estimate.low, estimate.high - estimate.value)


def _pairs(meetings: Sequence[Meeting], title: str) -> Table:
    rows = [(Cell(" ".join(each.jobs)), Cell(each.score), *_expected(each), _advised(each)) for each in meetings]
    return Table(
        (Column("jobs", kind="names"), *EXPECTED),
        plain(rows),
        title,
        empty="No pairs: there is only one job, which meets nobody.",
    )


def _expected(met: Meeting | None) -> tuple[Cell, Cell, Cell]:
    if met is None or met.outlook is None:
        return Cell(), Cell(), Cell()
    found = met.outlook
    return _figure(found.gain_mean), _figure(found.gain_anywhere), _figure(found.cost_mean)


def _figure(estimate: Estimate | None) -> Cell:
    return Cell() if estimate is None else Cell(estimate.value, (estimate.low, estimate.high))


def _advised(met: Meeting) -> Cell:
    said = [met.verdict.value]
    schedule = met.outlook.schedule if met.outlook else None
    if met.verdict is Verdict.SHIFT and schedule:
        said.append(
            ", ".join(f"{job} +{each.shift_ms:.1f} ms, every {each.period_ms:.1f}" for job, each in schedule.items())
        )
    return Cell(": ".join(filter(None, (*said, met.why))), tone=TONES[met.verdict])


def _placements(placements: Sequence[Placement]) -> Table:
    rows = [(Cell(each.name), Cell(each.score), *_expected(each.meeting), _of_placement(each)) for each in placements]
    return Table((Column("placement", kind="names"), *EXPECTED), plain(rows), "Placements, the best first")


def _of_placement(placement: Placement) -> Cell:
    if placement.meeting:
        return _advised(placement.meeting)
    if placement.reason:
        return Cell(f"left out: {placement.reason}", tone=Tone.OPEN)
    return Cell("nobody meets" if all(len(jobs) < 2 for jobs in placement.crossing.values()) else "")


def record(advice: Advice) -> dict[str, Any]:
    """Return the advice as JSON-compatible values. Intervals are of 95 %."""
    return {
        "capacity_gbps": advice.capacity_gbps,
        "iterations": ITERATIONS,
        "jobs": [
            {
                "job": each.job,
                "advice": each.found is not None,
                "reason": each.reason or None,
                "jitter_ms": each.jitter_ms if each.found else None,
                "found": asdict(each.found) if each.found else None,
            }
            for each in advice.jobs
        ],
        "pairs": [_meeting(each) for each in advice.pairs],
        "apart": [list(each.jobs) for each in advice.apart],
        "placements": [
            {
                "name": each.name,
                "crossing": each.crossing,
                "score": each.score,
                "reason": each.reason or None,
                "meeting": _meeting(each.meeting) if each.meeting else None,
            }
            for each in advice.placements
        ],
    }


def _meeting(met: Meeting) -> dict[str, Any]:
    return {
        "jobs": met.jobs,
        "advice": met.verdict.value,
        "why": met.why or None,
        "score": met.score,
        "expected": _outlook(met.outlook) if met.outlook else None,
    }


def _outlook(found: Outlook) -> dict[str, Any]:
    schedule = None if found.schedule is None else {job: each.model_dump() for job, each in found.schedule.items()}
    return {**asdict(found), "schedule": schedule}


def whole_page(advice: Advice, source: str) -> str:
    """Return the page's HTML, which loads nothing from elsewhere."""
    heading = page.named(f"From {source}, for links that carry {advice.capacity_gbps:g} Gbit/s")
    parts = [part for table in tables(advice) for part in (page.named(table.title), page.shown(table))]
    return page.whole_page("Advice", page.all_of([heading, page.text(EXPLAINED), *parts]))
