# SPDX-License-Identifier: Apache-2.0
"""The results of the study of levels: each job's iteration time at each level of one factor, and the best level.

The factor is the one that the experiment's study names (`over`), or the first besides the variant, or the variant.
"""

from collections.abc import Sequence

from analysis.expectations.results import JobCell, Result, Summary, common_fields
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.cross_traffic.load_sweep_data import varies_load
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run


class LevelLine(Result):
    """The cells of one job at one combination of the other factors' levels, in the order of the varied levels."""

    levels: dict[str, Level]
    job: str
    cells: tuple[JobCell, ...]
    best: Level

    @property
    def name(self) -> str:
        """Return the name in tables and figures."""
        return CellId(self.levels).name if self.levels else ""


class Results(Summary):
    """The study's own results."""

    factor: str
    lines: tuple[LevelLine, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a run over levels shows."""
    found = common_fields(run, choice)
    factor = experiment_of(run).x_factor
    return Results(**found, factor=factor, lines=_lines(found["cells"], factor))


def suits(experiment: Experiment) -> bool:
    """Return True for experiments that vary a factor with numeric levels, unless these are loads.

    Three levels at least are needed for a line of points.
    """
    levels = experiment.factors[experiment.x_factor] if experiment.factors else ()
    return len(levels) > 2 and not varies_load(experiment) and all(isinstance(each, int | float) for each in levels)


def _lines(cells: Sequence[JobCell], factor: str) -> tuple[LevelLine, ...]:
    groups: dict[tuple[CellId, str], list[JobCell]] = {}
    for cell in cells:
        groups.setdefault((cell.id.without_factor(factor), cell.job), []).append(cell)
    return tuple(
        LevelLine(levels=dict(around.levels), job=job, cells=tuple(own), best=_best(own, factor))
        for (around, job), own in groups.items()
    )


def _best(cells: Sequence[JobCell], factor: str) -> Level:
    """Return the level of the least median, or mean for iterations that have two modes."""
    return min(cells, key=lambda cell: cell.typical_ms).levels.get(factor, "")
