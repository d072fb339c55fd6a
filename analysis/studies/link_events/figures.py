# SPDX-License-Identifier: Apache-2.0
"""The figure of iteration times around links' events."""

from collections.abc import Mapping, Sequence
from operator import attrgetter

from matplotlib.figure import Figure

from analysis.reading.cells import CellTrials
from analysis.reading.recoveries import JobTimes
from analysis.render.style import SOFT, add_note, draw_word_key, job_colours, new_figure

DASHED = (0, (4, 3))


def draw_iterations(cells: Sequence[CellTrials], times: Mapping[tuple[str, str], JobTimes]) -> Figure | None:
    """Draw the iteration times of the first repetition against their ends, with a line for each event.

    Each cell with events has a panel.
    """
    shown = [cell for cell in cells if cell.spec.events and cell.trials]
    if not shown:
        return None
    colours = job_colours(list(dict.fromkeys(job for cell in shown for job in cell.jobs)))
    result, panels = new_figure(len(shown), 1, 0.6 + 2.3 * len(shown), sharex=True)
    for panel, cell in zip(panels, shown, strict=True):
        for job in cell.jobs:
            own = times[cell.trials[0], job]
            panel.plot(own.end_ms, own.iteration_ms, "o-", markersize=3, color=colours[job])
        panel.set_ylim(0)
        top = panel.get_ylim()[1]
        for event in sorted(cell.spec.events, key=attrgetter("at_ms")):
            panel.axvline(event.at_ms, color=SOFT, linewidth=1, linestyle=DASHED, zorder=1)
            add_note(panel, event.at_ms, 0.02 * top, f" {event.link} {event.what}", rotation=90, va="bottom", ha="left")
        panel.set_title(cell.name)
        panel.set_ylabel("iteration time, ms")
    draw_word_key(panels[0], colours)
    panels[-1].set_xlabel("end of the iteration, ms after the agreed start")
    return result
