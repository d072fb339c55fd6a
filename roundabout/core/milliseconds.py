# SPDX-License-Identifier: Apache-2.0
"""Formatting of times in milliseconds for screens, pages and figures."""

FEW_MS = 10.0
"""Times below it, in ms, have three significant digits: decimals alone would leave little of them, or nothing."""


def format_ms(ms: float, decimals: int = 1) -> str:
    """Return a time in ms with `decimals` decimals, or with three significant digits below `FEW_MS`."""
    return f"{ms:#.3g}" if 0 < abs(ms) < FEW_MS else f"{ms:z.{decimals}f}"
