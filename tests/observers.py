# SPDX-License-Identifier: Apache-2.0
"""Observers of runs, for tests: one that does nothing, and two that remember."""

import sys
from collections.abc import Callable
from typing import Any


class Silent:
    """One that receives everything, and does nothing about it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Reasons(Silent):
    """An observer that keeps why trials were invalid."""

    def __init__(self, when_ended: Callable[[], None] = lambda: None) -> None:
        self.reasons: list[str] = []
        self._when_ended = when_ended

    def trial_ended(self, _trial: Any, reasons: list[str], _again: bool, _disturbed: bool = False) -> None:
        self.reasons += reasons
        self._when_ended()


class Notes:
    """An observer that writes down what it receives."""

    def __init__(self):
        self.steps, self.iterations, self.links, self.ended = [], [], [], []
        self.disturbed, self.notices = [], []

    def run_started(self, run, plan, done):
        self.plan, self.done = plan, done

    def step(self, what):
        self.steps.append(what)

    def notice(self, text):
        self.notices.append(text)

    def trial_started(self, trial, attempt):
        pass

    def phase(self, what):
        pass

    def iteration(self, job, number, ms):
        self.iterations.append((job, number))

    def traffic(self, links, crossing):
        self.links += links.items()

    def leaves(self, pending):
        print("left:", *pending, file=sys.stderr)

    def trial_ended(self, trial, reasons, again, disturbed=False):
        self.ended.append((trial.variant, reasons, again))
        self.disturbed.append(disturbed)
