# SPDX-License-Identifier: Apache-2.0
"""The start of a computed trial, from which its tables count their instants."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TrialStart:
    """The instant at which the trial would have begun, on the run's clock, and that clock's offset from this host's."""

    start_ns: int
    offset_ns: int

    def ns(self, ms: Floats) -> npt.NDArray[np.int64]:
        """Return the run's nanoseconds at `ms` after the start."""
        return self.start_ns + np.rint(ms * 1e6).astype(np.int64)

    def columns(self, host: str, ms: Floats) -> Columns:
        """Return the columns of place and time."""
        at = self.ns(ms)
        length = len(ms)
        return {
            "host": [host] * length,
            "host_ns": at - self.offset_ns,
            "controller_ns": at,
            "offset_bound_ns": np.zeros(length, np.int64),
        }

    def iteration_columns(  # noqa: PLR0913, PLR0917 - the instants of an iteration, and its worker
        self, host: str, job: str, rank: int, start: Floats, compute_end: Floats, end: Floats
    ) -> Columns:
        """Return the columns of a worker's iterations, whose instants are in ms after the start; no bytes."""
        length = len(start)
        return {
            **self.columns(host, start),
            "job": [job] * length,
            "rank": [rank] * length,
            "iteration": np.arange(length),
            "start_ns": self.ns(start),
            "compute_end_ns": self.ns(compute_end),
            "comm_end_ns": self.ns(end),
            "iteration_ms": end - start,
            "compute_ms": compute_end - start,
            "communication_ms": end - compute_end,
            "late_ms": np.zeros(length),
        }
