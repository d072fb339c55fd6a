# SPDX-License-Identifier: Apache-2.0
"""Charts of advice: the cost of sharing a link for each job, and when jobs send, from a common start and shifted."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.advice.advice import JobGroup, Verdict
from analysis.advice.expected_slowdown import Schedule
from analysis.advice.observed_jobs import ObservedJob
from analysis.render.interval_chart import ChartAxis, ChartRow, Mark, chart_html
from analysis.render.page import Html, figure_html
from analysis.render.style import JOBS, new_figure
from analysis.statistics.phases import Estimate

SHARED, SHIFTED = "#E69F00", "#0072B2"
AXIS = ChartAxis("iteration time over that alone", 1.0, above="slower")
KEY = (("sharing as they are", SHARED), ("sharing, shifted as advised", SHIFTED))
PERIODS = 3
"""Number of the longest period's repetitions that the figure of shifts shows."""
TURNS = 60
"""Number of iterations that are drawn, most of them beyond the panel; enough for periods that differ twentyfold."""
CAPTION = (
    "When each job sends over the link, from a common start and with the advised time-shifts, over {periods} of the "
    "longest periods. A bar is as high as the job's rate is of what the link carries."
)


def cost_chart(groups: Sequence[JobGroup]) -> Html:
    """Return a chart of each job's iteration time in each group over that alone; nothing without groups."""
    rows = [row for group in groups for row in _cost_rows(group)]
    return chart_html(rows, AXIS, "Cost of sharing a link, by group and job", KEY) if rows else Html("")


def _cost_rows(group: JobGroup) -> list[ChartRow]:
    if group.outlook is None:
        return []
    title = f"{' and '.join(group.jobs)}: {group.verdict.value}"
    shifted = group.outlook.cost_shifted if group.verdict is Verdict.SHIFT else {}
    return [_cost_row(job, group.outlook.cost[job], shifted.get(job), title) for job in group.jobs]


def _cost_row(job: str, shared: Estimate, shifted: Estimate | None, title: str) -> ChartRow:
    marks = [Mark(shared.value, (shared.low, shared.high), SHARED, f"as they are: {shared.value:.2f}")]
    if shifted:
        marks.append(Mark(shifted.value, (shifted.low, shifted.high), SHIFTED, f"shifted: {shifted.value:.2f}"))
    note = f"shifted {shifted.value:.2f}" if shifted else ""
    return ChartRow(((job, ""),), tuple(marks), f"{shared.value:.2f}", note, title)


def shifts_figure(groups: Sequence[JobGroup], jobs: Sequence[ObservedJob], capacity_gbps: float) -> Html:
    """Return a figure of the first group that should be shifted, before and after; nothing if there is none."""
    known = {job.job: job for job in jobs}
    for group in groups:
        if group.verdict is Verdict.SHIFT and group.outlook and group.outlook.schedule:
            drawn = _draw_shifts([known[name] for name in group.jobs], group.outlook.schedule, capacity_gbps)
            alt = f"Sending of {' and '.join(group.jobs)}, before and after their time-shifts"
            return figure_html(drawn, CAPTION.format(periods=PERIODS), alt)
    return Html("")


def _draw_shifts(jobs: Sequence[ObservedJob], schedule: Schedule, capacity_gbps: float) -> Figure:
    figure, panels = new_figure(2, 1, 1.4 + 0.8 * len(jobs), sharex=True)
    own = {job.job: (0.0, job.found.period_ms.value) for job in jobs if job.found}
    shifted = {name: (each.shift_ms, each.period_ms) for name, each in schedule.items()}
    for panel, title, starts in zip(panels, ("from a common start", "shifted"), (own, shifted), strict=True):
        for place, job in enumerate(jobs):
            _draw_sending(panel, place, job, starts[job.job], capacity_gbps)
        panel.set_title(title)
        panel.set_yticks(range(len(jobs)), [job.job for job in jobs])
        panel.set_ylim(len(jobs) - 0.5, -0.5)
        panel.set_xlim(0, PERIODS * max(each.period_ms for each in schedule.values()))
        panel.grid(visible=False, axis="y")
    panels[-1].set_xlabel("ms")
    return figure


def _draw_sending(panel: Axes, place: int, job: ObservedJob, start: tuple[float, float], capacity_gbps: float) -> None:
    """Draw the job's phases that send as bars on a line, again after each period.

    `start` is the time of the first iteration, and the period, ms.
    """
    start_ms, period_ms = start
    colour = JOBS[place % len(JOBS)]
    for phase in job.found.phases if job.found else ():
        height = 0.85 * min(phase.gbps.value / capacity_gbps, 1.0)
        for turn in range(TURNS) if phase.sends else ():
            begin_ms = start_ms + turn * period_ms + phase.begin_ms.value
            panel.barh(place + 0.45 - height / 2, phase.duration_ms.value, height, begin_ms, color=colour, gid=job.job)
