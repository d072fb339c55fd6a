# SPDX-License-Identifier: Apache-2.0
"""The start of a computed trial, from which its tables count their instants."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, Any]


@dataclass(frozen=True)
class TrialStart:
    """The instant at which the trial would have begun, on the run's clock, and that clock's offset from this host's."""

    start_ns: int
    offset_ns: int

    def ns(self, ms: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the run's nanoseconds at `ms` after the start."""
        return self.start_ns + np.rint(ms * 1e6).astype(np.int64)

    def columns(self, host: str, ms: npt.NDArray[np.float64]) -> Columns:
        """Return the columns of place and time."""
        at = self.ns(ms)
        length = len(ms)
        return {
            "host": [host] * length,
            "host_ns": at - self.offset_ns,
            "controller_ns": at,
            "offset_bound_ns": np.zeros(length, np.int64),
        }
