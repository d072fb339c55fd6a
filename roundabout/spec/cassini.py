# SPDX-License-Identifier: Apache-2.0
"""Cassini in an experiment: jobs are shifted in time, and each job's time-shift agent follows a timetable.

Source: the interleaving thesis, section 4.4.2, step 3. Our copy lacks section 4.5.7, which states the drift that the
thesis's agents tolerate.
"""

from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from roundabout.spec.base import Name, NotNegative, Positive, Strict, drop_defaults

THRESHOLD = 0.01
"""Tolerated earliness, as a share of an iteration: our choice. docs/results/cassini-model.md shows its effect."""

LATE = 0.2
"""Tolerated lateness, as a share of a period. A job that is later waits for its next instant."""


class Clock(Strict):
    """A wrong clock: `behind_ms` is its lag at the agreed start, `slow_ppm` its drift in parts per million."""

    behind_ms: NotNegative = Field(default=0.0, description="lag at the agreed start")
    slow_ppm: NotNegative = Field(default=0.0, description="drift, parts per million")


class Timetable(Strict):
    """The instants at which a job's iterations may begin.

    The first instant is `shift_ms` after the trial's agreed start; the others follow every `period_ms`.

    An agent can only delay an iteration. If the iteration would begin more than `threshold_ms` before an instant, or
    more than `late_ms` after it, the iteration waits for the next instant. A job that is less late catches up, because
    periods are longer than iterations. Without `holds`, only the first iteration waits.
    """

    shift_ms: NotNegative = Field(description="first instant, after the trial's agreed start")
    period_ms: Positive = Field(description="time between two instants")
    threshold_ms: Positive = Field(description="largest earliness of an iteration that does not wait")
    holds: bool = Field(default=True, description="whether iterations after the first wait, too")

    def as_kept_by(self, clock: Clock) -> "Timetable":
        """Return the timetable in true time that agents follow if they have the wrong clock `clock`."""
        slower = self.stretch(1 + clock.slow_ppm / 1e6)
        return slower.model_copy(update={"shift_ms": self.shift_ms + clock.behind_ms})

    def stretch(self, by: float) -> "Timetable":
        """Return the timetable with all times multiplied by `by`."""
        names = ("shift_ms", "period_ms", "threshold_ms")
        return self.model_copy(update={name: by * getattr(self, name) for name in names})

    @property
    def late_ms(self) -> float:
        """Return how long after an instant an iteration may begin without waiting for the next instant, in ms."""
        return max(LATE * self.period_ms, self.threshold_ms)

    def early_ms(self, at_ms: float) -> float:
        """Return the time from `at_ms` to the timetable's next instant, in ms, at least 0 and less than a period."""
        return (self.shift_ms - at_ms) % self.period_ms

    def delay_ms(self, at_ms: float) -> float:
        """Return the agent's delay, in ms, of an iteration that could begin at `at_ms`."""
        early_ms = self.early_ms(at_ms)
        return early_ms if self.threshold_ms < early_ms < self.period_ms - self.late_ms else 0.0


class Cassini(Strict):
    """Cassini's settings. Jobs begin iterations by timetables, from their rotations or from `timetables`."""

    profiles: Name | None = Field(
        default=None, description="variant whose trials measure the jobs' profiles; default: the given profiles"
    )
    threshold: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=THRESHOLD, description="largest tolerated deviation from the timetable, as a share of an iteration"
    )
    held: bool = Field(default=True, description="if false, the timetable delays only a job's first iteration")
    clocks: dict[Name, Clock] = Field(
        default={}, description="wrong clocks of agents, by job; the other agents have exact clocks"
    )
    timetables: dict[Name, Timetable] = Field(
        default={}, description="given timetables by job, in place of computed ones; other jobs are not delayed"
    )

    @model_validator(mode="after")
    def _given_or_found(self) -> Self:
        found = self.profiles or self.threshold != THRESHOLD or not self.held or self.clocks
        if self.timetables and found:
            raise ValueError("either timetables, which are held as they are, or profiles, threshold, held and clocks")
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"held": True, "clocks": {}, "timetables": {}}, handler(self))
