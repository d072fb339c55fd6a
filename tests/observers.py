# SPDX-License-Identifier: Apache-2.0
"""Observers of runs that show nothing."""

from collections.abc import Callable
from typing import Any


class Silent:
    """One that hears everything, and does nothing about it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Reasons(Silent):
    """An observer that keeps why trials were invalid."""

    def __init__(self, when_ended: Callable[[], None] = lambda: None) -> None:
        self.reasons: list[str] = []
        self._when_ended = when_ended

    def trial_ended(self, _trial: Any, reasons: list[str], _again: bool) -> None:
        self.reasons += reasons
        self._when_ended()
