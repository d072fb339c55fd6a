# SPDX-License-Identifier: Apache-2.0
"""Cassini in an experiment: jobs are shifted in time, and each job's time-shift agent holds a timetable.

Source: the interleaving thesis, section 4.4.2, step 3. What drift its agents let pass is in a section that our copy
lacks (4.5.7).
"""

from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from roundabout.spec.base import Name, NotNegative, Positive, Strict, drop_defaults

THRESHOLD = 0.01
"""Of an iteration. A choice; docs/explanation/cassini.md has its effect."""

LATE = 0.2
"""A share of a period. A job that is late by less goes on and catches up; by more, it waits for its next instant."""


class Clock(Strict):
    """A wrong clock: its delay at the agreed start, and its further drift."""

    behind_ms: NotNegative = 0.0
    slow_ppm: NotNegative = 0.0


class Timetable(Strict):
    """The instants at which a job's iterations may begin.

    `shift_ms` after the trial's agreed start, then every `period_ms`.

    An agent can delay an iteration but not hasten it. One that would begin more than `threshold_ms` too early, or more
    than `late_ms` too late, waits for the next instant. A job that is late by less catches up, because periods
    are longer than iterations. Without `holds`, only the first iteration waits.
    """

    shift_ms: NotNegative
    period_ms: Positive
    threshold_ms: Positive
    holds: bool = True

    def as_kept_by(self, clock: Clock) -> "Timetable":
        """Return the timetable in true time, as agents with that clock keep it."""
        slower = self.stretch(1 + clock.slow_ppm / 1e6)
        return slower.model_copy(update={"shift_ms": self.shift_ms + clock.behind_ms})

    def stretch(self, by: float) -> "Timetable":
        """Return the timetable slowed down by the factor `by`."""
        names = ("shift_ms", "period_ms", "threshold_ms")
        return self.model_copy(update={name: by * getattr(self, name) for name in names})

    @property
    def late_ms(self) -> float:
        """Return how late an iteration may begin without waiting for the next instant."""
        return max(LATE * self.period_ms, self.threshold_ms)

    def early_ms(self, at_ms: float) -> float:
        """Return the time from an instant to the timetable's next, at least 0 and less than a period."""
        return (self.shift_ms - at_ms) % self.period_ms

    def delay_ms(self, at_ms: float) -> float:
        """Return the agent's delay of an iteration that could begin at this instant."""
        early_ms = self.early_ms(at_ms)
        return early_ms if self.threshold_ms < early_ms < self.period_ms - self.late_ms else 0.0


class Cassini(Strict):
    """Jobs that begin iterations by the rotations of their circles, or by given timetables, and are held to them."""

    profiles: Name | None = Field(
        default=None, description="the variant whose trials measure the jobs' profiles; the given ones unless named"
    )
    threshold: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=THRESHOLD, description="how far off its timetable, as a share of an iteration, a job may begin one"
    )
    held: bool = Field(default=True, description="or jobs only begin by their timetables, and are left alone")
    clocks: dict[Name, Clock] = Field(
        default={}, description="of jobs whose agents know the time less well than the others, by how much"
    )
    timetables: dict[Name, Timetable] = Field(
        default={}, description="by job, to hold it to in place of those that circles give; others are not held"
    )

    @model_validator(mode="after")
    def _given_or_found(self) -> Self:
        found = self.profiles or self.threshold != THRESHOLD or not self.held or self.clocks
        if self.timetables and found:
            raise ValueError("either timetables, which are held as they are, or profiles, threshold, held and clocks")
        return self

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"held": True, "clocks": {}, "timetables": {}}, handler(self))
