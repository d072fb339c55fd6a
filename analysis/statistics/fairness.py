# SPDX-License-Identifier: Apache-2.0
"""Fairness of shares of one resource."""

from collections.abc import Sequence


def jain_index(shares: Sequence[float]) -> float:
    """Return Jain's fairness index (DEC-TR-301, 1984): 1 for equal shares, 1/n if one of n gets everything.

    It is 0 if nothing was shared.
    """
    squares = sum(share**2 for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0
