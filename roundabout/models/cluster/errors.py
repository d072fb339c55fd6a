# SPDX-License-Identifier: Apache-2.0
"""Errors of cluster simulations."""

from roundabout.core.errors import RoundaboutError


class SchedulingError(RoundaboutError):
    """An error for a request of jobs, or of a scheduler, that a cluster cannot meet."""
