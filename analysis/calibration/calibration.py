# SPDX-License-Identifier: Apache-2.0
"""The agreement of a calibration of the lab with HotNets'22, Figures 1 and 2: one number for each criterion."""

from dataclasses import dataclass
from statistics import fmean

from analysis.expectations.results import gain_of_possible
from analysis.reading.cells import CellTrials, cells_of, first_shares
from roundabout.models.fluid import fluid_limits
from roundabout.spec.experiment import FAIR
from roundabout.store import Run, StoreError

UNFAIR = "unfair"
ALLOWED_EXCESS = 0.06
"""Fair iterations over the fluid model's."""
ALLOWED_DIFFERENCE = 0.02
"""Between the two fair jobs."""
ALLOWED_DRIFT = 0.03
"""Of the last quarter of fair iterations against the first."""
LEAST_SHARE = 1.5
"""Of j1 to j2 in the first unfair iteration; the paper's is `hotnets/fig-1c/share` (analysis/papers)."""
LEAST_GAIN = 0.8
"""Of what interleaving could gain, over the last half of the unfair iterations, for the job that gains less."""

LEAST_SIGN = 0.01
"""Below it there was no effect to speak of."""


@dataclass(frozen=True)
class CalibrationJudgement:
    """A run's figure for each criterion. `worst` is the one met least, as a ratio: up to 1 it is met."""

    excess: float
    difference: float
    drift: float
    share: float
    gain: float

    @property
    def worst(self) -> float:
        """Return the ratio of the criterion that is met least; above 1 it is not met."""
        return max(
            abs(self.excess) / ALLOWED_EXCESS,
            abs(self.difference) / ALLOWED_DIFFERENCE,
            abs(self.drift) / ALLOWED_DRIFT,
            LEAST_SHARE / max(self.share, LEAST_SIGN),
            LEAST_GAIN / max(self.gain, LEAST_SIGN),
        )


def judge_calibration(run: Run) -> CalibrationJudgement:
    """Judge a run of `calibrate-dcqcn`.

    Raises:
        StoreError: one of its trials is missing or invalid.
    """
    cells = {cell.variant: cell for cell in cells_of(run)}
    missing = [name for name in (FAIR, UNFAIR) if name not in cells]
    if missing:
        raise StoreError(f"{run.path}: found no valid trial of {' and '.join(missing)}, expected one of each variant")
    fair, unfair = cells[FAIR], cells[UNFAIR]
    shares = first_shares(run, unfair, "j1", "j2")
    if not shares:
        raise StoreError(f"{run.path}: found no counters of the first unfair iteration, expected them every 10 ms")
    limits = fluid_limits(fair.spec)
    one, other = (_mean(fair, job, slice(None)) for job in ("j1", "j2"))
    return CalibrationJudgement(
        excess=fmean((one, other)) / limits["j1"].fair_ms - 1,
        difference=one / other - 1,
        drift=fmean(drift_of(fair, job) for job in fair.times),
        share=fmean(shares),
        gain=min(gain_of_possible(unfair, fair, job, limits[job]) or 0.0 for job in unfair.times),
    )


def drift_of(cell: CellTrials, job: str) -> float:
    """Return how much longer the last quarter of a job's iterations takes than the first, as a share of that."""
    quarter = min(len(times) for times in cell.repetitions(job)) // 4
    return _mean(cell, job, slice(-quarter, None)) / _mean(cell, job, slice(0, quarter)) - 1


def _mean(cell: CellTrials, job: str, which: slice) -> float:
    return fmean(float(times[which].mean()) for times in cell.repetitions(job))
