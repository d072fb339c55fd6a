# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a lab."""

from roundabout.core.errors import RoundaboutError


class LabError(RoundaboutError):
    """The lab cannot do what was asked; says what was found, what was expected and what to do."""
