# SPDX-License-Identifier: Apache-2.0
"""Attributed delays as sentences, a table and a figure."""

from collections.abc import Iterable
from itertools import cycle, groupby

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.attribution.attribution import MIN_SHARE, Attribution, DelayPart, JobDelay
from analysis.expectations.results import CellFigure
from analysis.reading.disturbance import MARK
from analysis.render import style
from analysis.render.tables import Cell, Column, Section, Table

FINE_MS = 10.0
"""Iterations shorter than this, alone, are shown with three decimals of a millisecond in place of one."""

EXPLAINED = (
    "parts of the mean iteration time less the profile's; a part below 0 makes iterations shorter; unexplained: "
    "measured less computed by the model; docs/how-to/explain.md says how parts are computed"
)


def sentences(found: Attribution) -> list[str]:
    """Return a line for each job, with its cell if there are several."""
    several = len({job.cell for job in found.jobs}) > 1
    return [f"{job.cell}: {sentence(job)}" if several else sentence(job) for job in found.jobs]


def sentence(job: JobDelay) -> str:
    """Return what a job has lost, and to what, in one line."""
    form = _format([job])

    def time(ms: float) -> str:
        return f"{abs(ms):{form}}"

    text = f"{job.job} {'lost' if job.delay_ms.value >= 0 else 'gained'} {time(job.delay_ms.value)} ms per iteration"
    if not job.is_notable(job.delay_ms):
        return f"{text} of {time(job.alone_ms)} ms: nothing to explain"
    found = [f"{time(part.ms.value)} to {describe(part)}" for part in job.named]
    if job.savings:
        saved = " and ".join(f"{time(part.ms.value)} by {describe(part)}" for part in job.savings)
        found.append(f"less {saved}" if found else saved)
    if not found and abs(job.unexplained.ms.value) > MIN_SHARE * job.alone_ms:
        return f"{text}, which the model does not explain: its delay is {job.computed_ms:{form}} ms"
    if job.is_notable(job.unexplained.ms):
        found.append(f"{job.unexplained.ms.value:{form}} unexplained")
    return f"{text}: {', '.join(found) or 'to causes too small to name'}"


def describe(part: DelayPart) -> str:
    """Return the cause of a part in words."""
    at = f" on {part.link}" if part.link else ""
    words = {
        "job": f"{part.name}{at}",
        "cross traffic": f"cross traffic {part.name}{at}",
        "link events": f"events of {part.link}",
        "transport": f"{part.name} against fair sharing" + (f" beside {part.beside}" if part.beside else ""),
        "colliding paths": f"colliding paths{at}",
        "time-shift agent": "its time-shift agent",
        "slowest worker": "its slowest worker",
        "computing time": "its computing time",
        "own links": "links slower than its profile",
        "unexplained": "unexplained",
    }
    return words[part.cause]


def table(found: Attribution) -> Table:
    """Return the table of all parts of all jobs, a section for each cell."""
    form = _format(found.jobs)
    columns = (Column("job", kind="names"), Column("lost to", kind="words", wraps=True), Column("ms", form))
    sections = [
        Section(tuple(row for job in jobs for row in _rows(job, form)), heading)
        for heading, jobs in groupby(found.jobs, key=_heading)
    ]
    return Table(columns, tuple(sections), "Delay of an iteration, ms", EXPLAINED)


def _heading(job: JobDelay) -> str:
    return f"{job.cell} ({MARK})" if job.disturbed else job.cell


def _rows(job: JobDelay, form: str) -> list[tuple[Cell, ...]]:
    whole = f"in all: {job.iteration_ms:{form}} less {job.alone_ms:{form}}"
    shown = [part for part in job.parts[:-1] if float(f"{part.ms.value:{form}}")]
    ordered = (*sorted(shown, key=lambda part: -part.ms.value), job.unexplained)
    return [
        (Cell(job.job), Cell(whole), _figure_cell(job.delay_ms, form)),
        *((Cell(), Cell(describe(part)), _figure_cell(part.ms, form)) for part in ordered),
    ]


def _figure_cell(figure: CellFigure, form: str) -> Cell:
    """Return a cell with the figure, and its interval unless that looks like the figure."""
    looks = {f"{value:{form}}" for value in (figure.value, *(figure.ci95 or ()))}
    return Cell(figure.value, figure.ci95 if len(looks) > 1 else None)


def _format(jobs: Iterable[JobDelay]) -> str:
    """Return the format of times of these jobs, ms."""
    return "z.3f" if min((job.alone_ms for job in jobs), default=FINE_MS) < FINE_MS else "z.1f"


def origin(found: Attribution) -> str:
    """Return where the figures come from, in one line."""
    return f"{found.experiment} {found.run} on {found.testbed}, played again by the model of {found.model}"


def figure(found: Attribution) -> Figure:
    """Return a figure with a bar for each job: the parts of its delay, those that make iterations shorter below 0."""
    parts = [[part for part in job.parts if job.is_notable(part.ms)] for job in found.jobs]
    causes = dict.fromkeys(describe(part) for each in parts for part in each)
    colours = dict(zip(causes, cycle(style.FREE), strict=False))
    if "unexplained" in colours:
        colours["unexplained"] = style.FAINT
    rows = len(found.jobs) + 0.6 * len(causes)
    drawn, (axes,) = style.new_figure(1, 1, 1.0 + 0.4 * rows)
    for place, own in enumerate(parts):
        for sign in (1, -1):
            left = 0.0
            for part in own:
                if part.ms.value * sign > 0:
                    axes.barh(place, part.ms.value, left=left, height=0.6, color=colours[describe(part)])
                    left += part.ms.value
    axes.set_yticks(range(len(found.jobs)), [" ".join(filter(None, (job.cell, job.job))) for job in found.jobs])
    axes.set_ylim(len(found.jobs) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.axvline(0, color=style.SOFT, linewidth=0.8)
    axes.set_xlabel("delay of an iteration, ms")
    if causes:
        handles = [Patch(color=colour, label=cause) for cause, colour in colours.items()]
        drawn.legend(handles=handles, loc="outside lower left", fontsize=8)
    return drawn
