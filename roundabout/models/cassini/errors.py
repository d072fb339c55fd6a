# SPDX-License-Identifier: Apache-2.0
"""Errors of Cassini's geometry."""

from roundabout.core.errors import RoundaboutError


class CassiniError(RoundaboutError):
    """An error for jobs, links or placements that Cassini's geometry cannot solve."""


class LoopError(CassiniError):
    """An error for an affinity graph with a loop; `loop` has alternating jobs and links, such as `j1, L1, j2, L2`."""

    def __init__(self, loop: tuple[str, ...]) -> None:
        super().__init__(
            f"found a loop in the affinity graph: {' - '.join((*loop, loop[0]))}, expected none",
            "only without loops are there unique time-shifts (the interleaving thesis, Theorem 1)",
        )
        self.loop = loop
