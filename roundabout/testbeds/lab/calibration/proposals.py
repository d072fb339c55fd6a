# SPDX-License-Identifier: Apache-2.0
"""Proposals of constants for the lab: points of a cube whose sides are the logarithmic ranges of `ranges.yaml`.

The first points sample the cube evenly (a Latin hypercube, McKay et al. 1979). Later points are variations of the best
ones. A seed determines all points.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field, model_validator
from scipy.stats import qmc

from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Strict
from roundabout.spec.reader.yaml_source import read_document, shown_path
from roundabout.testbeds.lab.calibration.calibration import Calibration

DEFAULT = Path(__file__).with_name("ranges.yaml")
TRANSPORT = "dcqcn"
Point = tuple[float, ...]

BEST = 3
"""Number of best points that are varied in turn."""
FIRST_STEP, LAST_STEP = 0.15, 0.05
"""Standard deviations of the first and the last variation, as shares of each range."""
DIGITS = 3
"""Significant digits of a proposed value. Measurements do not resolve more."""


class Range(Strict):
    """The interval in which a constant is searched, on a logarithmic scale."""

    least: float = Field(gt=0)
    most: float = Field(gt=0)
    whole: bool = False

    @model_validator(mode="after")
    def _in_order(self) -> "Range":
        if self.least > self.most:
            raise ValueError(f"least at most as large as most, which is {self.most:g}")
        return self

    def at(self, place: float) -> float:
        """Return the value at a position from 0 to 1 of the interval."""
        value = self.least * (self._end / self.least) ** place
        return (
            float(min(math.floor(value), self.most))
            if self.whole
            else min(max(round_value(value), self.least), self.most)
        )

    def place(self, value: float) -> float:
        """Return the position of a value, from 0 to 1. A value outside of the interval is moved to the nearer end."""
        if self._end == self.least:
            return 0.0
        middle = value + 0.5 if self.whole else value
        return min(max(math.log(max(middle, self.least) / self.least) / math.log(self._end / self.least), 0.0), 1.0)

    @property
    def _end(self) -> float:
        """Return the end of the range. Whole numbers have equal room up to the next one."""
        return self.most + 1 if self.whole else self.most


class Ranges(Strict):
    """The ranges of all searched constants. `cnp_gap` is a share of the lab's period T, for T of `of_T_us` us."""

    of_T_us: float = Field(gt=0)  # noqa: N815 - the papers' name
    timer_scale: Range
    cnp_gap: Range
    alpha_timer_us: Range
    g: Range
    R_AI_mbps: Range
    R_HAI_mbps: Range
    F: Range
    kmin_bytes: Range
    kmax_over_kmin: Range

    @model_validator(mode="after")
    def _ordered(self) -> "Ranges":
        if self.cnp_gap.most >= 1 or self.kmax_over_kmin.least < 1:
            raise ValueError("cnp_gap below 1, and kmax_over_kmin of at least 1")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the searched constants, in the order of a point's coordinates."""
        return tuple(name for name in type(self).model_fields if name != "of_T_us")

    def calibration(self, point: Point, kept: Calibration) -> Calibration:
        """Return the calibration `kept` with its searched constants replaced by the values of `point`."""
        at = {name: getattr(self, name).at(place) for name, place in zip(self.names, point, strict=True)}
        kmin = round(at.pop("kmin_bytes"))
        ecn = {"kmin_bytes": kmin, "kmax_bytes": round(kmin * at.pop("kmax_over_kmin")), "pmax": 1.0}
        timer_scale = at.pop("timer_scale")
        gap = round_value(at.pop("cnp_gap") * self.of_T_us * timer_scale)
        values = {**kept.transports.get(TRANSPORT, {}), **at, "F": int(at["F"]), "cnp_gap_us": gap}
        changed = {"timer_scale": timer_scale, "ecn": ecn, "transports": {**kept.transports, TRANSPORT: values}}
        dumped = kept.model_dump(by_alias=True, exclude={"derived_from"})
        return Calibration.model_validate({**dumped, **changed})

    def place(self, kept: Calibration) -> Point:
        """Return the point of the cube that is nearest to the calibration `kept`."""
        values: dict[str, float] = {**kept.transports.get(TRANSPORT, {}), "timer_scale": kept.timer_scale}
        values["cnp_gap"] = values.get("cnp_gap_us", 0.0) / (self.of_T_us * kept.timer_scale)
        values["kmin_bytes"] = kept.ecn.kmin_bytes
        values["kmax_over_kmin"] = kept.ecn.kmax_bytes / max(kept.ecn.kmin_bytes, 1)
        return tuple(getattr(self, name).place(values.get(name, 0.0)) for name in self.names)


def load_ranges(path: Path = DEFAULT) -> Ranges:
    """Read the ranges. Raises SpecError if the file is missing, unreadable or invalid."""
    return parse_as(Ranges, read_document(path, shown_path(path)))


def latin_hypercube(count: int, sides: int, seed: int) -> list[Point]:
    """Return `count` points of a Latin hypercube with `sides` dimensions."""
    points = qmc.LatinHypercube(sides, seed=np.random.default_rng(seed)).random(count)
    return [tuple(map(float, point)) for point in points]


def vary_best(best: Sequence[Point], number: int, count: int, seed: int) -> Point:
    """Return variation `number` (from 0) of `count`: a random point near one of the `best` points in turn.

    The distance decreases from FIRST_STEP to LAST_STEP.
    """
    generator = np.random.default_rng([seed, number])
    step = FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (number / max(count - 1, 1))
    about = np.array(best[number % min(len(best), BEST)])
    # Points outside the cube are reflected into it. Clipping them would try its faces too often.
    folded = np.abs(about + step * generator.standard_normal(len(about))) % 2
    return tuple(map(float, np.where(folded > 1, 2 - folded, folded)))


def round_value(value: float) -> float:
    """Round a value to DIGITS significant digits."""
    return float(f"{value:.{DIGITS}g}")
