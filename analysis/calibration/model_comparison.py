# SPDX-License-Identifier: Apache-2.0
"""Predictions of DCQCN's mean field for an experiment's cells beside a run's measurements of the same cells."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analysis.calibration.calibration_targets import ALLOWED_SHARE, ALLOWED_SPEEDUP
from analysis.calibration.predictions import Prediction
from analysis.expectations.expectations import Limits
from analysis.expectations.verdicts import judge_interval
from analysis.reading.cells import CellId, CellTrials, cells_of, experiment_of, first_shares
from analysis.reading.disturbance import MARK
from analysis.reading.speedups import baseline_of, speedup
from analysis.render.tables import TONES, Cell as Shown, Column, Table, one_section
from analysis.statistics.intervals import Interval, mean_of
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.spec.experiment import FAIR, Experiment
from roundabout.store import Run, StoreError


@dataclass(frozen=True)
class ModelComparison:
    """A predicted figure with its tolerance, and the measured figure with its 95 % interval.

    The interval decides the verdict. Without an interval, as with too few repetitions, the verdict is `inconclusive`,
    and so it is for a figure of disturbed trials.
    """

    foretold: float | None
    allowed: float
    measured: float | None = None
    ci95: Interval | None = None
    disturbed: bool = False

    @property
    def verdict(self) -> Word:
        """Return the verdict: `pass` if all of the interval lies within the tolerance, `fail` if none of it does."""
        if self.foretold is None or self.measured is None:
            return NOT_MEASURED
        if self.disturbed:
            return "inconclusive"
        return judge_interval(self.ci95, Limits(self.foretold - self.allowed, self.foretold + self.allowed))


@dataclass(frozen=True)
class Row:
    """The comparisons of one cell; `speedup` is None for a fair cell, which is the baseline of the others."""

    levels: dict[str, Any]
    share: ModelComparison
    speedup: ModelComparison | None

    def record(self) -> dict[str, Any]:
        """Return the row as JSON-compatible values."""
        figures = {name: each for name in ("share", "speedup") if (each := getattr(self, name)) is not None}
        return {name: {**asdict(each), "verdict": each.verdict} for name, each in figures.items()}


def refuse_another(run: Run, experiment: Experiment) -> None:
    """Raise StoreError if a cell of the run has other jobs or links than the cell of equal levels in `experiment`."""
    own = {CellId(cell.levels): cell.spec for cell in experiment.cells}
    for cell in experiment_of(run).cells:
        requested = own.get(CellId(cell.levels))
        if requested is None or (requested.jobs, requested.topology) != (cell.spec.jobs, cell.spec.topology):
            raise StoreError(
                f"{run.path}: found other jobs, transports or links in cell {CellId(cell.levels).name}, expected those "
                f"of {experiment.name}"
            )


def compare_predictions(found: Sequence[Prediction], run: Run) -> list[Row]:
    """Return a row for each prediction.

    Raises:
        StoreError: the run measured none of these cells, or its trials cannot be read.
    """
    measured = {cell.id: cell for cell in cells_of(run)}
    if not any(CellId(each.cell.levels) in measured for each in found):
        raise StoreError(f"{run.path}: found no valid trial of a predicted cell, expected the same cells")
    return [_row(each, run, measured) for each in found]


def table(experiment: Experiment, rows: Sequence[Row]) -> Table:
    """Return a row for each cell; intervals are below figures."""
    columns = (
        *(Column(factor.rpartition(".")[2], kind="words") for factor in experiment.factors),
        *(column for name in ("share", "speed-up") for column in _columns(name)),
    )
    shown = ((*(Shown(str(each.levels[factor])) for factor in experiment.factors), *_cells(each)) for each in rows)
    return Table(columns, one_section(shown), "Predicted and measured figures")


def _row(each: Prediction, run: Run, measured: dict[CellId, CellTrials]) -> Row:
    levels = dict(each.cell.levels)
    cell = measured.get(CellId(levels))
    disturbed = cell is not None and cell.disturbance is not None
    measured_share, ends = _share(run, cell) or (None, None)
    share = ModelComparison(each.share, ALLOWED_SHARE * (each.share or 0.0), measured_share, ends, disturbed)
    if each.cell.variant == FAIR:
        return Row(levels, share, None)
    fair = baseline_of(measured.values(), cell, FAIR) if cell else None
    gain = speedup(fair, cell, None) if fair and cell else None
    disturbed |= fair is not None and fair.disturbance is not None
    measured_gain, ends = gain or (None, None)
    return Row(levels, share, ModelComparison(each.speedup, ALLOWED_SPEEDUP, measured_gain, ends, disturbed))


def _share(run: Run, cell: CellTrials | None) -> tuple[float, Interval | None] | tuple[()]:
    shares = first_shares(run, cell, *cell.jobs[:2]) if cell else []
    return mean_of(shares) if shares else ()


def _columns(name: str) -> Iterator[Column]:
    yield Column(f"{name}\npredicted", ".2f")
    yield Column("\nmeasured", ".2f")
    yield Column("", kind="words")


def _cells(row: Row) -> Iterator[Shown]:
    for each in (row.share, row.speedup):
        if each is None:
            yield from (Shown(), Shown(), Shown())
            continue
        alone = each.measured is not None and each.ci95 is None
        yield Shown(each.foretold)
        yield Shown(each.measured, interval=each.ci95, note="no interval" if alone else "")
        yield Shown(each.verdict, note=MARK if each.disturbed else "", tone=TONES[each.verdict])
