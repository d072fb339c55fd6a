# SPDX-License-Identifier: Apache-2.0
"""The looks at a growing run, as its manifest records them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class LookSchedule:
    """The schedule of a run's looks, as its manifest records it.

    `repetitions` are those of the allowed looks, which are fixed before the first trial. `spent_s` is the time that the
    run took up to the latest look.
    """

    repetitions: tuple[int, ...]
    budget_s: float
    spent_s: float = 0.0

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self | None:
        """Return the schedule in a run's manifest; None for a run with one look."""
        found = manifest.get("looks")
        return cls(**{**found, "repetitions": tuple(found["repetitions"])}) if found else None

    def after(self, repetitions: int) -> int | None:
        """Return the repetitions of the look after that with `repetitions`; None if it is the last or too long.

        All repetitions are expected to take as long as those so far.
        """
        following = next((each for each in self.repetitions if each > repetitions), None)
        if following is None or self.spent_s * following / repetitions > self.budget_s:
            return None
        return following
