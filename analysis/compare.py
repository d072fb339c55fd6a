# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: the same variants, levels and jobs, and how much quicker one is than the other."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from analysis.reading.cells import CellId, CellTrials, cells_of, speedup
from analysis.render import screen
from analysis.render.tables import Cell, Column, Table, plain
from analysis.results import JobCell, Result, Summary, Testbed
from analysis.statistics.intervals import Interval
from analysis.summary import stored_or_new
from roundabout.errors import RoundaboutError
from roundabout.spec.base import Level
from roundabout.store import Run


class CompareError(RoundaboutError):
    """The two runs cannot be compared."""


class ComparedRun(Result):
    """One of the two."""

    experiment: str
    run: str
    testbed: Testbed


class Side(Result):
    """A job in one of them."""

    repetitions: int
    iterations: int
    median_ms: float
    median_ci95_ms: Interval | None


class ComparedCell(Result):
    """A job in both, and the speed-up of the second over the first."""

    variant: str
    levels: dict[str, Level]
    job: str
    a: Side
    b: Side
    speedup: float
    speedup_ci95: Interval | None


class Comparison(Result):
    """Two runs, and every cell that both have."""

    runs: tuple[ComparedRun, ComparedRun]
    cells: tuple[ComparedCell, ...]

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return self.model_dump(mode="json")


def compare(one: Run, other: Run, *, mixed: bool = False) -> Comparison:
    """Every cell that both runs have: its median in each, and the speed-up of `other` over `one` with its interval.

    Raises CompareError where the runs share no cell, and, unless `mixed`, where one is real and the other is not, say.
    """
    a, b = stored_or_new(one), stored_or_new(other)
    natures = [each.testbed.fidelity.nature for each in (a, b)]
    if natures[0] != natures[1] and not mixed:
        raise CompareError(
            f"{one.id} is {natures[0]} and {other.id} is {natures[1]}",
            f"what was {natures[0]} is not what was {natures[1]}; say --mixed to compare them all the same",
        )
    cells = tuple(_compared(cells_of(one), cells_of(other), a.cells, b.cells))
    if not cells:
        raise CompareError(
            f"{one.id} and {other.id} have no variant, levels and job in common",
            "compare runs of one experiment, or of experiments that share variants",
        )
    return Comparison(runs=(_run(a), _run(b)), cells=cells)


def table(comparison: Comparison) -> RenderableType:
    """A comparison for the screen, made for 100 columns."""
    lines = [
        Text(f"{name}  {run.experiment} {run.run} ({run.testbed.fidelity.stamp})")
        for name, run in zip("AB", comparison.runs, strict=True)
    ]
    natures = [run.testbed.fidelity.nature for run in comparison.runs]
    if natures[0] != natures[1]:
        differ = "their figures differ in more than the runs"
        lines.append(Text(f"one of them was {natures[0]}, the other was {natures[1]}: {differ}", "yellow"))
    columns = (
        *(Column(kind="words"), Column("job", kind="words")),
        *(Column("A"), Column("B"), Column("speed-up\nof B over A", ".3f")),
        Column(kind="words"),
    )
    rows = (_row(each) for each in comparison.cells)
    return Group(*lines, screen.shown(Table(columns, plain(rows), "Median iteration time in ms, with 95 % intervals")))


def _compared(
    one: Sequence[CellTrials], other: Sequence[CellTrials], a: Sequence[JobCell], b: Sequence[JobCell]
) -> Iterator[ComparedCell]:
    there = {cell.id: cell for cell in other}
    sides = [{(cell.id, cell.job): Side.model_validate(cell.model_dump()) for cell in cells} for cells in (a, b)]
    for cell in one:
        twin = there.get(cell.id)
        for job in cell.times if twin and twin.variant == cell.variant else ():
            effect = speedup(cell, twin, job) if twin else None
            if effect is not None:
                yield ComparedCell(
                    variant=cell.variant,
                    levels=dict(cell.levels),
                    job=job,
                    a=sides[0][cell.id, job],
                    b=sides[1][cell.id, job],
                    speedup=effect[0],
                    speedup_ci95=effect[1],
                )


def _run(summary: Summary) -> ComparedRun:
    return ComparedRun(experiment=summary.experiment, run=summary.run, testbed=summary.testbed)


def _row(cell: ComparedCell) -> Sequence[Cell]:
    return (
        Cell(CellId({**cell.levels, "variant": cell.variant}).name),
        Cell(cell.job),
        Cell(cell.a.median_ms, cell.a.median_ci95_ms),
        Cell(cell.b.median_ms, cell.b.median_ci95_ms),
        Cell(cell.speedup, cell.speedup_ci95),
        _reading(cell.speedup_ci95),
    )


def _reading(interval: Interval | None) -> Cell:
    if interval is None:
        return Cell(note="not measured")
    if interval[0] > 1:
        return Cell("B is quicker")
    return Cell("A is quicker") if interval[1] < 1 else Cell(note="no difference shown")
