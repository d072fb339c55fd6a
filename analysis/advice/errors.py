# SPDX-License-Identifier: Apache-2.0
"""What advice refuses."""

from roundabout.errors import UsageError


class AdviceError(UsageError):
    """Counters, lists of jobs or placements that cannot be read as such."""
