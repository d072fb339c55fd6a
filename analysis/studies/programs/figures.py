# SPDX-License-Identifier: Apache-2.0
"""The figure of programs: iteration times and bus bandwidths, iteration by iteration."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.reading.cells import CellTrials, jobs_of
from analysis.reading.data import Series
from analysis.render.style import draw_word_key, iteration_ticks, new_panels
from analysis.statistics.intervals import Array

Repetitions = Callable[[CellTrials], list[Array]]


def draw_iterations(cells: Sequence[CellTrials], bandwidths: Series, colours: Mapping[str, str]) -> Figure:
    """Draw each job's iteration times, and its bus bandwidths if it reported any, a thin line for each repetition."""
    panels = [panel for job in jobs_of(cells) for panel in _panels(job, cells, bandwidths)]
    result, axes = new_panels(len(panels), 2.9, sharey=False)
    for panel, (title, repetitions) in zip(axes, panels, strict=False):
        for cell in cells:
            for series in repetitions(cell):
                panel.plot(np.arange(1, len(series) + 1), series, color=colours[cell.name], linewidth=0.9)
        panel.set_title(title)
        panel.set_ylim(bottom=0)
        panel.set_xlabel("iteration")
        panel.xaxis.set_major_locator(iteration_ticks())
    draw_word_key(axes[0], dict(colours))
    return result


def _panels(job: str, cells: Sequence[CellTrials], bandwidths: Series) -> list[tuple[str, Repetitions]]:
    """Return the title of each of a job's panels, and a function that returns a cell's lines in it."""

    def times(cell: CellTrials) -> list[Array]:
        return cell.repetitions(job) if job in cell.times else []

    def rates(cell: CellTrials) -> list[Array]:
        return [bandwidths[trial, job] for trial in cell.trials if (trial, job) in bandwidths]

    panels: list[tuple[str, Repetitions]] = [(f"{job}: iteration time, ms", times)]
    if any(map(rates, cells)):
        panels.append((f"{job}: bus bandwidth, Gbit/s", rates))
    return panels
