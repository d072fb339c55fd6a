# SPDX-License-Identifier: Apache-2.0
"""The error of labs."""

from roundabout.core.errors import RoundaboutError


class LabError(RoundaboutError):
    """The lab cannot do what was requested. The message gives the value found, the allowed ones, and a remedy."""
