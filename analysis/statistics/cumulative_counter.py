# SPDX-License-Identifier: Apache-2.0
"""A cumulative counter over time, known from samples. Counts are integers."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]


class Gains(NamedTuple):
    """A counter's gains between consecutive edges, as arrays with one value for each gap.

    The `counts` add up to the gain from the first edge to the last. A `known` count is off by at most its `bounds`. An
    unknown one lies in part outside the samples, or in a gap in which the counter was lost.
    """

    counts: Integers
    bounds: Integers
    known: Truths


@dataclass(frozen=True)
class CumulativeCounter:
    """A counter's gain since its first sample: `totals` at the instants `at_ns`, arrays of length n that never fall.

    `known`, of length n - 1, is False between samples whose gain is unknown because the counter was reset or missing;
    the gain counts as 0 there. No instant is off by more than `bound_ns`.
    """

    at_ns: Integers
    totals: Integers
    known: Truths
    bound_ns: int = 0

    @classmethod
    def from_increments(cls, at_ns: Integers, increments: Floats | Integers, bound_ns: int = 0) -> "CumulativeCounter":
        """Return the counter of n instants and the n - 1 increments between them; nan for an unknown increment."""
        known = np.isfinite(increments)
        gained = np.where(known, increments, 0).astype(np.int64)
        return cls(at_ns, np.concatenate([np.zeros(min(len(at_ns), 1), np.int64), np.cumsum(gained)]), known, bound_ns)

    @property
    def total_gain(self) -> int:
        """Return the gain from the first sample to the last."""
        return int(self.totals[-1]) if len(self.totals) else 0

    def value_at(self, edges_ns: Integers) -> Integers:
        """Return the total at each edge, interpolated linearly between samples and rounded down.

        Edges outside the samples get the nearest sample's total.
        """
        if len(self.at_ns) < 2:
            return np.zeros(len(edges_ns), np.int64)
        after = np.clip(np.searchsorted(self.at_ns, edges_ns, side="right"), 1, len(self.at_ns) - 1)
        begin, end = self.at_ns[after - 1], self.at_ns[after]
        lower, upper = self.totals[after - 1], self.totals[after]
        # Python's integers: the product may need more than 64 bits.
        passed = np.maximum(edges_ns, begin) - begin
        step = (upper - lower).astype(object) * passed // np.maximum(end - begin, 1)
        return np.where(edges_ns < end, lower + np.where(edges_ns < end, step, 0).astype(np.int64), upper)

    def gains_between(self, edges_ns: Integers, bound_ns: int = 0) -> Gains:
        """Return the gains between consecutive edges, which must not fall and are off by at most `bound_ns`.

        A gain between two samples may have come at any instant between them, and edges and samples may be off by their
        bounds. The gains' bounds cover both errors.
        """
        pieces = max(len(edges_ns) - 1, 0)
        totals = self.value_at(edges_ns)
        if len(self.at_ns) < 2:
            return Gains(np.diff(totals), np.zeros(pieces, np.int64), np.zeros(pieces, np.bool_))
        slack, last = self.bound_ns + bound_ns, len(self.at_ns) - 1
        first_after = np.searchsorted(self.at_ns, edges_ns + slack, side="left")
        last_before = np.searchsorted(self.at_ns, edges_ns - slack, side="right") - 1
        upper, lower = np.minimum(first_after, last), np.maximum(last_before, 0)
        off = np.maximum(self.totals[upper] - totals, totals - self.totals[lower])
        lost = np.concatenate([[0], np.cumsum(~self.known)])
        known = (last_before[:-1] >= 0) & (first_after[1:] <= last) & (lost[upper[1:]] == lost[lower[:-1]])
        return Gains(np.diff(totals), off[:-1] + off[1:], known)

    def restrict_to(self, begin_ns: int, end_ns: int) -> "CumulativeCounter":
        """Return the counter restricted to an interval: its total is constant before and after."""
        begin, end = self.value_at(np.array([begin_ns, end_ns]))
        return replace(self, totals=np.clip(self.totals, begin, end) - begin)

    def rate(self, edges_ns: Integers) -> Floats:
        """Return the mean rate between consecutive edges, per second; nan if the gain is unknown."""
        gains = self.gains_between(edges_ns)
        return np.where(gains.known, gains.counts / np.diff(edges_ns) * 1e9, np.nan)


EMPTY = CumulativeCounter.from_increments(np.zeros(0, np.int64), np.zeros(0, np.int64))
"""A counter without samples."""
