# SPDX-License-Identifier: Apache-2.0
"""What stages hold what they find to."""

from roundabout.core.errors import RoundaboutError


def hold(found: object, expected: object, what: str) -> None:
    """Raise RoundaboutError where something is not what it should be."""
    if found != expected:
        raise RoundaboutError(f"{what}: found {found}, expected {expected}")
