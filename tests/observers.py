# SPDX-License-Identifier: Apache-2.0
"""Observers of runs that show nothing."""

from typing import Any


class Silent:
    """One that hears everything, and does nothing about it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None
