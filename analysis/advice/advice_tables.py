# SPDX-License-Identifier: Apache-2.0
"""Advice as tables, as a record for programs, and as a page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from analysis.advice.advice import Advice, JobGroup, Placement, Verdict
from analysis.advice.advice_charts import cost_chart, shifts_figure
from analysis.advice.expected_slowdown import DRAWS, FLOW_LEVEL_ERROR, Outlook
from analysis.advice.observed_jobs import ObservedJob
from analysis.render import page
from analysis.render.tables import Cell, Column, Table, Tone, one_section
from analysis.statistics.phases import Estimate, FoundProfile
from roundabout.models.fluid import ITERATIONS

TONES = {Verdict.SHIFT: Tone.GOOD, Verdict.SHARE: Tone.UNKNOWN, Verdict.APART: Tone.BAD, Verdict.NONE: Tone.OPEN}
EXPECTED = (
    Column("score", ".3f"),
    Column("speed-up", ".2f"),
    Column("from any\nstart", ".2f"),
    Column("slowdown", ".2f"),
    Column("advice", kind="words"),
)
"""Columns of the expected figures of jobs that share links."""
EXPLAINED = f"""\
score: Cassini's compatibility score at the best shifts; 1 if the link carries all that the jobs demand.
speed-up: mean iteration time of jobs that share from a common start over that shifted; below 1 the shifts cost time.
from any start: the same over random starts. slowdown: shared from a common start over alone, without shifts.
Computed by the fluid model: the mean of {ITERATIONS} iterations and of the jobs. An interval is that of \
{DRAWS} draws of the jobs' figures; its upper end is multiplied by {FLOW_LEVEL_ERROR:.2f}, by which measured times \
exceeded the model's at most."""
JOBS_EXPLAINED = """\
jitter: standard deviation of the iterations' times. samples: of a host's counter in a period; iterations of fewer \
than seven samples show as longer ones, or not at all. autocorrelation: of the sending rate, one period later; 1 if \
all iterations are alike. (±): the farther end of the 95 % interval"""
TITLE = "Which jobs should share a link"


def tables(advice: Advice) -> list[Table]:
    """Return tables of notes, jobs, pairs, groups to separate, and placements, without empty ones."""
    groups = [each for each in advice.groups_to_separate if len(each.jobs) > 2]
    found = [*note_tables(advice.notes), _jobs(advice.jobs), _pairs(advice.pairs, "Pairs")]
    if groups:
        found.append(_pairs(groups, "Groups that should not meet"))
    if advice.placements:
        found.append(_placements(advice.placements))
    return found


def note_tables(notes: Sequence[str]) -> list[Table]:
    """Return the table of notes, or none without notes."""
    return (
        [Table((Column("note", kind="words"),), one_section([(Cell(note),) for note in notes]), "Notes")]
        if notes
        else []
    )


def _jobs(jobs: Sequence[ObservedJob]) -> Table:
    columns = (
        Column("job", kind="names"),
        Column("period,\nms", ".1f"),
        Column("jitter,\nms", ".1f"),
        Column("samples", ".0f"),
        Column("auto-\ncorrelation", ".2f"),
        Column("sends", kind="words"),
    )
    rows = [
        (
            Cell(each.job),
            *_certainty(each),
            Cell(_sends(each.found) if each.found else f"no advice: {each.reason}"),
        )
        for each in jobs
    ]
    return Table(columns, one_section(rows), "Jobs", JOBS_EXPLAINED, empty="No jobs.")


def _certainty(job: ObservedJob) -> tuple[Cell, Cell, Cell, Cell]:
    if job.found is None:
        return Cell(), Cell(), Cell(), Cell()
    period = job.found.period_ms
    length = Cell(period.value, (period.low, period.high))
    return length, Cell(job.jitter_ms), Cell(job.samples), Cell(job.found.correlation)


def _sends(found: FoundProfile) -> str:
    """Describe each phase that sends: begin, end, and bytes."""
    return ", ".join(
        f"{phase.begin_ms.value:.0f}-{phase.begin_ms.value + phase.duration_ms.value:.0f} ms "
        f"(±{_relative_error(phase.duration_ms):.1f}) "
        f"at {phase.gbps.value:.1f} Gbit/s (±{_relative_error(phase.gbps):.1f})"
        for phase in found.phases
        if phase.sends
    )


def _relative_error(estimate: Estimate) -> float:
    return max(estimate.value - estimate.low, estimate.high - estimate.value)


def _pairs(groups: Sequence[JobGroup], title: str) -> Table:
    rows = [(Cell(" ".join(each.jobs)), Cell(each.score), *_expected(each), _advised(each)) for each in groups]
    return Table(
        (Column("jobs", kind="names"), *EXPECTED),
        one_section(rows),
        title,
        empty="No pairs: there is only one job.",
    )


def _expected(met: JobGroup | None) -> tuple[Cell, Cell, Cell]:
    if met is None or met.outlook is None:
        return Cell(), Cell(), Cell()
    found = met.outlook
    return figure_cell(found.gain_mean), figure_cell(found.gain_anywhere), figure_cell(found.cost_mean)


def figure_cell(estimate: Estimate | None) -> Cell:
    """Return a figure with its interval; an empty cell for None."""
    return Cell() if estimate is None else Cell(estimate.value, (estimate.low, estimate.high))


def _advised(met: JobGroup) -> Cell:
    said = [met.verdict.value]
    schedule = met.outlook.schedule if met.outlook else None
    if met.verdict is Verdict.SHIFT and schedule:
        said.append(
            ", ".join(f"{job} +{each.shift_ms:.1f} ms, every {each.period_ms:.1f}" for job, each in schedule.items())
        )
    return Cell(": ".join(filter(None, (*said, met.why))), tone=TONES[met.verdict])


def _placements(placements: Sequence[Placement]) -> Table:
    rows = [row for each in placements for row in _placement_rows(each)]
    return Table((Column("placement", kind="names"), *EXPECTED), one_section(rows), "Placements, the best first")


def _placement_rows(placement: Placement) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each group of jobs that share links, the first one with the placement's name and score."""
    name = Cell(placement.name), Cell(placement.score)
    if not placement.job_groups:
        alone = Cell("no jobs share a link")
        yield (
            *name,
            *_expected(None),
            Cell(f"left out: {placement.reason}", tone=Tone.OPEN) if placement.reason else alone,
        )
    for met in placement.job_groups:
        said = _advised(met)
        several = len(placement.job_groups) > 1
        yield *name, *_expected(met), replace(said, value=f"{' '.join(met.jobs)}: {said.value}") if several else said
        name = Cell(), Cell()


def record(advice: Advice) -> dict[str, Any]:
    """Return the advice as JSON-compatible values. Intervals are of 95 %."""
    return {
        "capacity_gbps": advice.capacity_gbps,
        "iterations": ITERATIONS,
        "notes": list(advice.notes),
        "jobs": [
            {
                "job": each.job,
                "advice": each.found is not None,
                "reason": each.reason or None,
                "jitter_ms": each.jitter_ms if each.found else None,
                "samples": each.samples if each.found else None,
                "found": asdict(each.found) if each.found else None,
            }
            for each in advice.jobs
        ],
        "pairs": [_meeting(each) for each in advice.pairs],
        "apart": [list(each.jobs) for each in advice.groups_to_separate],
        "placements": [
            {
                "name": each.name,
                "crossing": each.crossing,
                "score": each.score,
                "reason": each.reason or None,
                "meetings": [_meeting(met) for met in each.job_groups],
            }
            for each in advice.placements
        ],
    }


def _meeting(met: JobGroup) -> dict[str, Any]:
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


def render_page(advice: Advice, source: str) -> str:
    """Return the page's HTML, which loads nothing from elsewhere."""
    lead = f"From {source}, for links that carry {advice.capacity_gbps:g} Gbit/s"
    parts = [
        page.title_html(TITLE, lead),
        cost_chart(advice.pairs),
        shifts_figure(advice.pairs, advice.jobs, advice.capacity_gbps),
        *page.titled_tables(tables(advice)),
        *map(page.paragraph, EXPLAINED.splitlines()),
    ]
    return page.render_document("Advice", page.concatenate(parts))
