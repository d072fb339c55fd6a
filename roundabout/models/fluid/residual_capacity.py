# SPDX-License-Identifier: Apache-2.0
"""The residual capacity of links for jobs over time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roundabout.spec.topology import Direction

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ResidualCapacity:
    """The capacity of each direction of a link for jobs, bytes/ms, in steps of `step_ms`; the last step has no end.

    An array has one value for all steps, or one for each step.
    """

    bytes_per_ms: Mapping[Direction, Floats]
    step_ms: float = math.inf

    @classmethod
    def constant(cls, capacity: Mapping[Direction, float]) -> "ResidualCapacity":
        """Return a residual capacity that is constant over time."""
        return cls({edge: np.array([rate]) for edge, rate in capacity.items()})

    def bytes_until(self, ms: Floats, edge: Direction) -> Floats:
        """Return the bytes that a direction can carry for jobs from 0 until each of these instants."""
        rates = self.bytes_per_ms[edge]
        if len(rates) == 1:
            return ms * float(rates[0])
        step = np.minimum((ms / self.step_ms).astype(int), len(rates) - 1)
        before = np.concatenate([[0.0], np.cumsum(rates[:-1]) * self.step_ms])
        until: Floats = before[step] + rates[step] * (ms - step * self.step_ms)
        return until
