# SPDX-License-Identifier: Apache-2.0
"""Errors of cluster simulations."""

from roundabout.core.errors import RoundaboutError


class SchedulingError(RoundaboutError):
    """A cluster cannot do what its jobs, or its scheduler, ask for."""
