# SPDX-License-Identifier: Apache-2.0
"""A load sweep: iteration times at each level of cross traffic, repetition by repetition."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from analysis.statistics.intervals import MIN_REPETITIONS, Array, Measured, mean_of, redraw_means
from roundabout.core.errors import RoundaboutError

DRAWS = 2000
"""Number of redrawn sweeps for intervals; 50 of them lie beyond each end."""


class DegradationError(RoundaboutError):
    """An error for a sweep, or a request, that does not suffice for the analysis."""


@dataclass(frozen=True, eq=False)
class Level:
    """One load of cross traffic, Gbit/s, and the iteration times, s, as one array for each repetition."""

    load_gbps: float
    repetitions_s: tuple[Array, ...]

    @cached_property
    def means_s(self) -> Array:
        """Return the mean iteration time of each repetition, s."""
        return np.array([times.mean() for times in self.repetitions_s])

    @property
    def mean_s(self) -> Measured:
        """Return the mean of the repetitions' means, s, with its interval."""
        return mean_of(self.means_s.tolist())

    @property
    def times_s(self) -> Array:
        """Return the iteration times of all repetitions, s, as one array."""
        return np.concatenate(self.repetitions_s)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Levels in the order of their loads, and the bottleneck's capacity in Gbit/s.

    Raises DegradationError if loads do not rise within 0 to below `link_gbps`, if a level or a repetition is empty, and
    if a time is not positive and finite.
    """

    levels: tuple[Level, ...]
    link_gbps: float

    def __post_init__(self) -> None:
        for level in self.levels:
            _check(level, self.link_gbps)
        for one, other in pairwise(self.levels):
            if one.load_gbps >= other.load_gbps:
                raise DegradationError(
                    f"found {other.load_gbps:g} Gbit/s after {one.load_gbps:g}, expected levels of rising load",
                    "sort the levels, and join those of the same load",
                )

    @property
    def loads_gbps(self) -> Array:
        """Return the levels' loads, Gbit/s; shape (levels,)."""
        return np.array([level.load_gbps for level in self.levels])

    @cached_property
    def means_s(self) -> Array:
        """Return each level's mean of its repetitions' mean iteration times, s, so that repetitions have equal weight.

        Shape (levels,).
        """
        return np.array([level.means_s.mean() for level in self.levels])

    @property
    def available_gbps(self) -> Array:
        """Return the bandwidth that cross traffic leaves at each level, Gbit/s; shape (levels,)."""
        return self.link_gbps - self.loads_gbps

    def redraw(self, seed: int) -> Array | None:
        """Return the log mean times of sweeps redrawn from the repetitions; shape (`DRAWS`, levels).

        None with fewer than four repetitions at some level.
        """
        if any(len(level.repetitions_s) < MIN_REPETITIONS for level in self.levels):
            return None
        generator = np.random.default_rng(seed)
        return np.log(
            np.stack([redraw_means(level.means_s.tolist(), DRAWS, generator) for level in self.levels], axis=1)
        )

    def require_levels(self, levels: int, purpose: str) -> None:
        """Raise DegradationError with fewer than `levels` levels; the message says that `purpose` needs them."""
        if len(self.levels) < levels:
            found = f"{len(self.levels)} level{'' if len(self.levels) == 1 else 's'}"
            raise DegradationError(f"found {found}, expected at least {levels} {purpose}", "measure at more loads")


def _check(level: Level, link_gbps: float) -> None:
    if not 0 <= level.load_gbps < link_gbps:
        raise DegradationError(
            f"found a load of {level.load_gbps:g} Gbit/s, expected one from 0 to below the link's {link_gbps:g}",
            "the load is the payload that was measured, in the papers' units",
        )
    if not level.repetitions_s or any(times.size == 0 for times in level.repetitions_s):
        raise DegradationError(f"found no iteration in a repetition at {level.load_gbps:g} Gbit/s, expected some")
    times_s = level.times_s
    if not (np.isfinite(times_s) & (times_s > 0)).all():
        raise DegradationError(
            f"found an iteration time that is not a positive number at {level.load_gbps:g} Gbit/s",
            "leave out iterations that did not end",
        )
