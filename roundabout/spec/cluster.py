# SPDX-License-Identifier: Apache-2.0
"""A cluster in an experiment: a trace of jobs, and the scheduler that places them.

Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from roundabout.spec.base import Name, NotNegative, Positive, Strict, drop_defaults
from roundabout.spec.cassini import THRESHOLD
from roundabout.spec.trace import Trace
from roundabout.spec.transports import Transport

MOVE_S = 30.0
"""A guess: the delay that Pollux' authors give each job that is reallocated in their simulator (OSDI'21, section 5.3).

Effect: the longer, the more a scheduler that often moves jobs loses of their completion times; iteration times do not
change but for who is beside whom.
"""
MOVES_S = (15.0, 120.0)
"""From where guesses are drawn: the checkpointing and restarting that Pollux' authors measured (there)."""


class SchedulerChoice(Strict):
    """A scheduler by name, and its own options beside that (docs/reference/schedulers.md)."""

    model_config = ConfigDict(extra="allow")

    name: Name

    @property
    def options(self) -> dict[str, Any]:
        """Return the scheduler's own options."""
        return dict(self.model_extra or {})


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class CassiniRanking(Strict):
    """Cassini ranks a scheduler's candidate placements, and shifts the jobs of the chosen one."""

    threshold: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=THRESHOLD,
        description="how far off its timetable, as a share of its period, a job may begin",
    )


class TraceWindow(Strict):
    """A window of a trace, which is the trial: the jobs present then, at their places."""

    from_s: NotNegative
    lasts_s: Positive


class Cluster(Strict):
    """Jobs that arrive by a trace, and are placed by a scheduler."""

    scheduler: Annotated[SchedulerChoice, BeforeValidator(_named, json_schema_input_type=Name | SchedulerChoice)]
    cassini: CassiniRanking | None = Field(default=None, description="around the scheduler, if at all")
    trace: Trace
    guesses: Literal["stated", "drawn"] = Field(
        default="stated", description="of models and of moving: as they stand, or drawn from their ranges by the seed"
    )
    move_s: NotNegative | None = Field(
        default=None, description="for which a job stands still that is moved; a guess unless given"
    )
    slice: TraceWindow | None = Field(default=None, description="a window of the trace; all of it unless given")
    transport: Transport = Field(description="of every job; the experiment's unless given")

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"move_s": None, "slice": None}, handler(self))

    @property
    def describe(self) -> str:
        """Describe the cluster in a word or two."""
        return f"{self.scheduler.name} with cassini" if self.cassini else self.scheduler.name
