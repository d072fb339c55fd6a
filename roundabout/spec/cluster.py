# SPDX-License-Identifier: Apache-2.0
"""A cluster in an experiment: a trace of jobs, and the scheduler that places them.

Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Name, NotNegative, Positive, Strict, drop_defaults
from roundabout.spec.cassini import THRESHOLD
from roundabout.spec.trace import Trace
from roundabout.spec.transports import Transport

MOVE_S = 10.9
"""Seconds for which a moved job stands still: the median of 195 moves at a load of 0.9 in MonkeyTree's Figure 12.

A longer delay lengthens completion times under schedulers that often move jobs. It changes iteration times only through
which jobs share links.
"""
MOVES_S = (15.0, 120.0)
"""Range of `MOVE_S` for drawn guesses, in seconds: times of checkpoint and restart that Pollux's authors measured."""


Rank = Literal["algorithm-2", "worst-link", "played"]
"""The rule that ranks candidate placements."""


Priorities = Literal["crux"]
"""The rule that gives jobs priorities on the network."""

Paths = Literal["crux", "foresight", "perfect", "sglb"]
"""The rule that chooses the paths of jobs' flows."""


class SchedulerChoice(Strict):
    """A scheduler's name and its options, as further fields (docs/reference/schedulers.md)."""

    model_config = ConfigDict(extra="allow")

    name: Name = Field(description="name of the scheduler")

    @property
    def options(self) -> dict[str, Any]:
        """Return the scheduler's options, by name."""
        return dict(self.model_extra or {})


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class CassiniRanking(Strict):
    """Cassini's ranking of a scheduler's candidate placements, with time-shifts of the chosen placement's jobs."""

    threshold: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=THRESHOLD,
        description="largest tolerated deviation of an iteration from the timetable, as a share of the period",
    )
    rank: Rank = Field(
        default="algorithm-2",
        description="rule that ranks placements: the mean compatibility score over shared links, without loops "
        "(`algorithm-2`, the thesis), the mean over jobs of the worst link's score at random phases (`worst-link`), or "
        "the mean slowdown of jobs in the flow-level engine (`played`)",
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"rank": "algorithm-2"}, handler(self))


class TraceWindow(Strict):
    """A window of a trace, in seconds. The trial runs the jobs that are present in the window, on their hosts."""

    from_s: NotNegative = Field(description="begin of the window")
    lasts_s: Positive = Field(description="length of the window")


class Cluster(Strict):
    """A cluster whose jobs arrive by a trace and are placed by a scheduler."""

    scheduler: Annotated[SchedulerChoice, BeforeValidator(_named, json_schema_input_type=Name | SchedulerChoice)] = (
        Field(description="scheduler that places the jobs: its name, or its name and options")
    )
    cassini: CassiniRanking | None = Field(
        default=None, description="ranking of the scheduler's placements by Cassini; default: none"
    )
    migrate: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="most swaps of two workers at a decision, each where the sum over jobs of the worst link's excess "
        "falls by 0.10 or more; the jobs that it moves stand still for `move_s`",
    )
    fragments: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="most jobs of a rack that reach beyond it, or most rings of a `mix`: at a decision as few workers "
        "as possible move until no rack has more (MonkeyTree); their jobs stand still for `move_s`; "
        "default: any number",
    )
    priorities: Priorities | None = Field(
        default=None,
        description="rule that gives placed jobs priorities, as many as `priority_queues`: GPU intensity (`crux`); "
        "default: none",
    )
    paths: Paths | None = Field(
        default=None,
        description="rule that chooses the paths of placed jobs' flows, with `ecmp` routing: the least loaded one, "
        "most intense jobs first (`crux`), together with time-shifts, so that phases do not overlap (`foresight`), or "
        "so that the rings of a `mix` share as few links as they can (`perfect`), or, for each flow of a `mix`, one of "
        "the least loaded now (`sglb`); default: the switches' hashes choose",
    )
    trace: Trace = Field(description="where the jobs come from")
    guesses: Literal["stated", "drawn"] = Field(
        default="stated", description="guesses about models and `move_s`: as stated, or drawn from ranges by the seed"
    )
    move_s: NotNegative | None = Field(
        default=None, description="seconds for which a moved job stands still; default: a guess"
    )
    slice: TraceWindow | None = Field(default=None, description="window of the trace to run; default: the whole trace")
    transport: Transport = Field(description="transport of every job; default: the experiment's")

    @model_validator(mode="after")
    def _one_rule_moves_workers(self) -> Self:
        if self.migrate and self.fragments is not None:
            expected = "one rule that moves running workers"
            hint = "leave out `migrate` or `fragments`; in a variant give `migrate: 0` or `fragments: null`"
            said = {"location": ("fragments",), "found": "fragments beside migrate", "expected": expected, "hint": hint}
            raise PydanticCustomError("located", "{expected}", said)
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unsaid = {"migrate": 0, "fragments": None, "priorities": None, "paths": None, "move_s": None, "slice": None}
        return drop_defaults(unsaid, handler(self))

    @property
    def describe(self) -> str:
        """Return a short description of the cluster: the scheduler's name, and what is used around it."""
        around = {"cassini": self.cassini, "migration": self.migrate, "defragmentation": self.fragments}
        around |= {"crux": "crux" in (self.priorities, self.paths), "foresight": self.paths == "foresight"}
        used = [name for name, value in around.items() if value]
        return f"{self.scheduler.name} with {' and '.join(used)}" if used else self.scheduler.name
