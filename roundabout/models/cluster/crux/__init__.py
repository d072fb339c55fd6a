# SPDX-License-Identifier: Apache-2.0
"""Crux: priorities of jobs by their GPU intensity. Source: Cao et al., SIGCOMM 2024, sections 3 and 4.

docs/reference/schedulers.md says which parts of the paper are here, and which are reconstructed.
"""

from roundabout.models.cluster.crux.compression import compress_priorities
from roundabout.models.cluster.crux.priorities import (
    CommunicatingJob,
    assign_priorities,
    communicating_jobs,
    demand_finder,
    with_crux_priorities,
)

__all__ = [
    "CommunicatingJob",
    "assign_priorities",
    "communicating_jobs",
    "compress_priorities",
    "demand_finder",
    "with_crux_priorities",
]
