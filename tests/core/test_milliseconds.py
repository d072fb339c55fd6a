# SPDX-License-Identifier: Apache-2.0
"""Milliseconds as text."""

import pytest

from roundabout.core.milliseconds import format_ms

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("ms", "decimals", "text"),
    [
        (0.0293, 1, "0.0293"),
        (0.14648, 0, "0.146"),
        (2.34375, 1, "2.34"),
        (9.9996, 1, "10.0"),
        (10, 1, "10.0"),
        (363.84, 1, "363.8"),
        (363.84, 0, "364"),
        (0.0, 1, "0.0"),
        (-0.0293, 1, "-0.0293"),
    ],
)
def test_short_times_keep_three_significant_digits(ms, decimals, text):
    assert format_ms(ms, decimals) == text
