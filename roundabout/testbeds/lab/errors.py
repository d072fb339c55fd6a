# SPDX-License-Identifier: Apache-2.0
"""The error of labs."""

from roundabout.core.errors import RoundaboutError


class LabError(RoundaboutError):
    """Error for a request that the lab cannot fulfil. The message has the found and the allowed values."""
