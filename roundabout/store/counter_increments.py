# SPDX-License-Identifier: Apache-2.0
"""Increments of a cumulative counter between samples, computed with numpy.

A counter that falls between two samples has wrapped, was reset to zero, or went backwards (a cached or torn reading).
Only the largest possible increment in that time distinguishes a wrapped 32-bit counter from a reset one.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from roundabout.core.errors import RoundaboutError

Kind = Literal["ok", "wrap", "reset", "backwards", "gone", "full"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KNOWN: tuple[Kind, ...] = ("ok", "wrap")

MAX_PER_S = 1e11  # bytes per second of an 800 Gbit/s port, the largest rate of any counter
WRAPS_BITS = 32  # the only width that wraps within a run; narrower counters stop at their maximum


@dataclass(frozen=True)
class Increments:
    """The increments of a counter between consecutive samples, as arrays of length n - 1 for n samples.

    `gained` is at least 0, or nan if unknown. `kind` is one of KINDS. The increment is known for "ok" and "wrap" (the
    counter passed 2^32). It is unknown if the counter was set to zero ("reset") or fell otherwise ("backwards"). It is
    also unknown if a sample could not be read ("gone"), or if the counter stood at its maximum ("full").
    """

    gained: NDArray[np.float64]
    kind: NDArray[np.str_]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Return an array that is True where the increment is known."""
        return np.isin(self.kind, KNOWN)

    @property
    def total(self) -> int:
        """Return the sum of all known increments, exactly."""
        return sum(int(each) for each in self.gained[self.known])


def compute_increments(
    at_ns: NDArray[np.int64], values: NDArray[Any], width_bits: int = 64, *, most_per_s: float = MAX_PER_S
) -> Increments:
    """Return the increments of a counter that had `values` at the instants `at_ns`. Both arrays have length n.

    The counter has `width_bits` bits and gains at most `most_per_s` a second, in the unit of `values`. None or nan is a
    failed reading. Two samples of one instant have a known increment unless the counter fell.

    Raises:
        ValueError: the lengths differ.
        RoundaboutError: instants fall, because the clock was set back between samples.
    """
    if len(at_ns) != len(values):
        raise ValueError(f"found {len(at_ns)} instants for {len(values)} values, expected as many")
    lasted_s = np.diff(at_ns) / 1e9
    if (lasted_s < 0).any():
        first = int(np.flatnonzero(lasted_s < 0)[0])
        raise RoundaboutError(
            f"a counter's clock went back by {-lasted_s[first]:.6f} s after sample {first + 1} of {len(at_ns)}, "
            "expected instants that do not fall",
            "keep the host's clock from being stepped during a trial, then measure again",
        )
    readable = _readable(values)
    counts = np.where(readable, values, 0)
    if counts.dtype.kind != "f":  # floats can be beyond 2^63
        counts = counts.astype(np.int64)
    before, after = counts[:-1], counts[1:]
    gained, most = after - before, most_per_s * lasted_s
    wrapped = gained + (1 << WRAPS_BITS)
    kind = np.select(
        [
            ~(readable[:-1] & readable[1:]),
            (width_bits < WRAPS_BITS) & (after == (1 << min(width_bits, WRAPS_BITS)) - 1),
            gained >= 0,
            (width_bits == WRAPS_BITS) & (wrapped >= 0) & (wrapped <= most),
            (after <= most) & (after <= before // 2),
        ],
        ["gone", "full", "ok", "wrap", "reset"],
        "backwards",
    )
    amounts = np.select([kind == "ok", kind == "wrap"], [gained, wrapped])
    return Increments(np.where(np.isin(kind, KNOWN), amounts, np.nan), kind)


def _readable(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(~np.isnan(values))
    if values.dtype.kind == "O":
        return np.array([value is not None for value in values], dtype=np.bool_)
    return np.ones(len(values), dtype=np.bool_)
