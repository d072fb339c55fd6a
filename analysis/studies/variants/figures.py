# SPDX-License-Identifier: Apache-2.0
"""The figures of one group of compared cells, which differ in color. Each function draws a figure and returns it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.reading.cells import CellTrials, jobs_of
from analysis.reading.congestion.marks_and_drops import counts_of_cell
from analysis.reading.data import Series
from analysis.reading.phase_overlap import Spans, compute_offsets, simulate_from_spans
from analysis.render.style import INK, ROW, SOFT, add_note, draw_level, draw_word_key, new_figure, new_panels
from analysis.statistics.intervals import Array, stack_to_shortest
from analysis.studies.variants.study import Gain

DASHED: Any = (0, (4, 2))


class PanelLine(NamedTuple):
    """The lines of one cell in one panel: a series for each repetition, and those of the flow-level model."""

    name: str
    repetitions: Sequence[Array]
    theory: Sequence[Array]


class ShownCell(NamedTuple):
    """One cell with its name, and each trial's spans of communication, as measured and in the flow-level model."""

    name: str
    cell: CellTrials
    trial_spans: Sequence[Spans]
    theory: Sequence[tuple[Mapping[str, Array], Mapping[str, Array]]]


def prepare_cell(name: str, cell: CellTrials, found: Mapping[str, Spans]) -> ShownCell:
    """Return a cell with its spans in the flow-level model, started as each trial was; a job alone has none."""
    trial_spans = [found[trial] for trial in cell.trials if trial in found]
    is_modeled = cell.spec.has_concurrent_jobs and all(job.trainer.plays_profile for job in cell.spec.jobs.values())
    played = [simulate_from_spans(cell.spec, spans) for spans in trial_spans] if is_modeled else []
    return ShownCell(name, cell, trial_spans, [each for each in played if each])


def draw_over_iterations(cells: Sequence[ShownCell], colours: Mapping[str, str]) -> Figure:
    """Draw each job's iteration times and its offset from the first job by iteration; the model is dashed."""
    jobs = jobs_of(each.cell for each in cells)
    result, axes = new_panels(2 * len(jobs) - 1, 2.9, sharey=False)
    for panel, job in zip(axes, jobs, strict=False):
        lines = [
            PanelLine(each.name, each.cell.repetitions(job), [times[job] for _, times in each.theory])
            for each in cells
            if job in each.cell.times
        ]
        _draw(panel, lines, colours)
        panel.set_title(f"{job}: iteration time, ms")
    for panel, job in zip(axes[len(jobs) :], jobs[1:], strict=True):
        concurrent = [each for each in cells if each.cell.spec.has_concurrent_jobs and job in each.cell.times]
        lines = [
            PanelLine(
                each.name,
                [compute_offsets(spans)[job] for spans in each.trial_spans],
                [compute_offsets(own)[job] for own, _ in each.theory],
            )
            for each in concurrent
        ]
        _draw(panel, lines, colours)
        panel.set_ylim(bottom=0)
        panel.set_title(f"{jobs[0]} and {job}: offset, ms")
    for panel in axes:
        panel.set_xlabel("iteration")
    _key(result, cells, colours, theory=True)
    return result


def draw_distributions(cells: Sequence[ShownCell], lost: Mapping[str, Array], colours: Mapping[str, str]) -> Figure:
    """Draw cumulative distributions of each job's iteration times, and of marks and drops if ports counted them."""
    jobs = jobs_of(each.cell for each in cells)
    counted = [PanelLine(each.name, own, []) for each in cells if (own := counts_of_cell(lost, each.cell))]
    result, axes = new_panels(len(jobs) + bool(counted), 2.9, sharey=False)
    for place, (panel, job) in enumerate(zip(axes, jobs, strict=False)):
        for each in cells:
            if job in each.cell.times:
                ordered = np.sort(np.concatenate(each.cell.repetitions(job)))
                panel.step(
                    [ordered[0], *ordered], np.linspace(0, 1, len(ordered) + 1), where="post", color=colours[each.name]
                )
        panel.set_title(job)
        panel.set_xlabel("iteration time, ms")
        if place % ROW == 0:
            panel.set_ylabel("share of iterations")
    if counted:
        _draw(axes[-1], counted, colours)
        axes[-1].set_ylim(bottom=0)
        axes[-1].set_title("marked and dropped, packets")
        axes[-1].set_xlabel("iteration")
    _key(result, cells, colours, theory=False)
    return result


def draw_losses(cells: Sequence[ShownCell], losses: Series, colours: Mapping[str, str]) -> Figure | None:
    """Draw the training loss of each job against iteration number; None if no job really trains."""

    def of(cell: CellTrials, job: str) -> list[Array]:
        return [losses[trial, job] for trial in cell.trials if (trial, job) in losses]

    train = [each for each in cells if any(of(each.cell, job) for job in each.cell.jobs)]
    if not train:
        return None
    jobs = jobs_of(each.cell for each in train)
    result, axes = new_panels(len(jobs), 2.9, sharey=False)
    for panel, job in zip(axes, jobs, strict=True):
        _draw(panel, [PanelLine(each.name, own, []) for each in train if (own := of(each.cell, job))], colours)
        panel.set_ylim(bottom=0)
        panel.set_title(f"{job}: loss")
        panel.set_xlabel("iteration")
    _key(result, train, colours, theory=False)
    return result


def draw_gain_by_score(gains: Sequence[Gain], colours: Mapping[str, str]) -> Figure | None:
    """Draw the gain of each job with a timetable, with its 95 % interval, against the compatibility score.

    None with fewer than two scores.
    """
    held = [(each.score, each) for each in gains if each.score is not None]
    if len({score for score, _ in held}) < 2:
        return None
    result, (panel,) = new_figure(1, 1, 3.3)
    for score, each in held:
        panel.plot(score, each.mean, "o", color=colours[each.name])
        if each.mean_ci95:
            panel.plot([score, score], each.mean_ci95, color=colours[each.name], linewidth=1.2)
    for (group, score), some in groupby(held, lambda each: (each[1].group, each[0])):
        add_note(panel, score, max(each.mean for _, each in some), group, ha="center", va="bottom", offset=(0, 6))
    panel.invert_xaxis()
    draw_level(panel, 1, "no gain", below=True)
    panel.set_xlabel("compatibility score")
    panel.set_ylabel("speed-up of the mean iteration")
    draw_word_key(panel, {each.name: colours[each.name] for _, each in held})
    return result


def _draw(panel: Axes, lines: Sequence[PanelLine], colours: Mapping[str, str]) -> None:
    """Draw thin lines for repetitions, a thick one for their median, the theory's median dashed."""
    longest = 2
    for name, repetitions, theory in lines:
        series = stack_to_shortest(repetitions)
        number = np.arange(1, series.shape[1] + 1)
        longest = max(longest, len(number))
        thin = panel.plot(number, series.T, color=colours[name], alpha=0.28, linewidth=0.8) if len(series) > 1 else []
        for place, line in enumerate(thin, start=1):
            line.set_gid(f"repetition {place}")
        panel.plot(number, np.median(series, axis=0), color=colours[name], linewidth=2, gid="median")
        if theory:
            played = np.median(stack_to_shortest(theory), axis=0)
            panel.plot(np.arange(1, len(played) + 1), played, color=colours[name], linewidth=1.2, linestyle=DASHED)
    panel.set_xlim(1, longest)
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if not lines:
        add_note(panel, 0.5, 0.5, "no jobs that meet", SOFT, xycoords="axes fraction", ha="center")


def _key(result: Figure, cells: Sequence[ShownCell], colours: Mapping[str, str], *, theory: bool) -> None:
    """Draw the color key above all panels."""
    lines = [Line2D([], [], color=colours[each.name], linewidth=2, label=each.name) for each in cells]
    if theory and any(each.theory for each in cells):
        lines.append(Line2D([], [], color=INK, linewidth=1.2, linestyle=DASHED, label="theory"))
    result.legend(handles=lines, loc="outside upper right", ncols=min(len(lines), 6))
