# SPDX-License-Identifier: Apache-2.0
"""A profile: one iteration of a training job that has the network to itself."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text, Tuple


class Phase(Strict):
    """A part of an iteration: computing for `compute_ms`, or sending `bytes`, which alone takes `alone_ms`.

    `bytes` is the payload that each worker sends to its ring neighbour in the phase, at the papers' scale. Where the
    numbers come from is said by `source` (paper, figure or table), or by `guess`: its reasoning, and its effect.
    """

    name: Name
    compute_ms: NotNegative | None = None
    bytes: Annotated[int, Field(gt=0, le=10**12)] | None = None
    alone_ms: Positive | None = None
    source: Text | None = None
    guess: Text | None = None

    @model_validator(mode="after")
    def _one_kind_one_origin(self) -> Self:
        if (self.compute_ms is None) == (self.bytes is None) or (self.bytes is None) != (self.alone_ms is None):
            raise ValueError("either compute_ms, or bytes and alone_ms together")
        if (self.source is None) == (self.guess is None):
            raise ValueError("exactly one of source (paper, figure or table) and guess (reasoning and effect)")
        return self

    @property
    def demand_gbps(self) -> float:
        """The payload rate at which the phase sends when nothing hinders it, Gbit/s; 0 while computing."""
        return 0.0 if self.bytes is None or self.alone_ms is None else self.bytes * 8 / self.alone_ms / 1e6

    @property
    def duration_ms(self) -> float:
        """How long the phase takes on an idle network."""
        return (self.compute_ms or 0.0) + (self.alone_ms or 0.0)


class Profile(Strict):
    """One iteration of a job alone: its phases in order."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Name
    model: Text
    batch: Annotated[int, Field(gt=0)] | None = None
    source: Text | None = None
    phases: Annotated[Tuple[Phase], Field(min_length=1)]

    @model_validator(mode="after")
    def _phases_differ(self) -> Self:
        names = [phase.name for phase in self.phases]
        if len(set(names)) < len(names):
            raise ValueError("phases with different names")
        if self.alone_ms <= 0:
            raise ValueError("phases that take time")
        return self

    @property
    def compute_ms(self) -> float:
        """Computing time of an iteration."""
        return sum(phase.compute_ms or 0.0 for phase in self.phases)

    @property
    def comm_ms(self) -> float:
        """Communication time of an iteration on an idle network."""
        return sum(phase.alone_ms or 0.0 for phase in self.phases)

    @property
    def comm_bytes(self) -> int:
        """Payload that each worker sends in an iteration, at the papers' scale."""
        return sum(phase.bytes or 0 for phase in self.phases)

    @property
    def alone_ms(self) -> float:
        """Duration of an iteration on an idle network."""
        return self.compute_ms + self.comm_ms
