# SPDX-License-Identifier: Apache-2.0
"""What a cluster refuses."""

from roundabout.core.errors import RoundaboutError


class SchedulingError(RoundaboutError):
    """A cluster that cannot do what its jobs, or its scheduler, ask for."""
