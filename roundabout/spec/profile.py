# SPDX-License-Identifier: Apache-2.0
"""A profile: one iteration of a training job that has the network to itself."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text, Tuple
from roundabout.spec.patterns import Pattern, Transfer, all_transfers

Rank = Annotated[int, Field(ge=0, lt=10_000)]
Group = Annotated[Tuple[Rank], Field(min_length=2)]


def ring_allreduce_bytes(parameters: int, workers: int) -> int:
    """Return the payload bytes that each of `workers` sends to all-reduce `parameters` 32-bit numbers in a ring.

    Source: Salamy, equation 3.1 (which counts bits).
    """
    return round(2 * (workers - 1) / workers * parameters * 4)


class Phase(Strict):
    """A part of an iteration: computing for `compute_ms`, or sending `bytes`.

    `bytes` is payload at the papers' scale; sending it on an idle network takes `alone_ms`. `pattern` defines the
    transfers within each of the `groups` (docs/reference/patterns.md). The numbers have a `source` (paper, figure or
    table), or are a `guess` with its reasoning and effect. A file may give a model's `parameters` in place of `bytes`,
    which then follow from the profile's `workers`.
    """

    name: Name = Field(description="name of the phase, unique in the profile")
    compute_ms: NotNegative | None = Field(default=None, description="duration of a phase that computes")
    bytes: Annotated[int, Field(gt=0, le=10**12)] | None = Field(
        default=None, description="payload of a phase that sends"
    )
    parameters: Annotated[int, Field(gt=0, le=10**12)] | None = Field(
        default=None, description="count of 32-bit numbers that a ring all-reduces, in place of `bytes`"
    )
    alone_ms: Positive | None = Field(default=None, description="time that sending takes on an idle network")
    pattern: Pattern = Field(default="ring", description="communication pattern, which defines the transfers")
    groups: Annotated[Tuple[Group], Field(min_length=1)] | None = Field(
        default=None, description="groups of communicating workers, by rank; default: one group of all"
    )
    source: Text | None = Field(default=None, description="paper, figure or table of the numbers")
    guess: Text | None = Field(default=None, description="reasoning of guessed numbers, and their effect")

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        ranks = [rank for group in self.groups or () for rank in group]
        if len(set(ranks)) < len(ranks):
            raise ValueError("each worker in one group at most")
        if self.pattern == "pairs" and any(len(group) % 2 for group in self.groups or ()):
            raise ValueError("an even number of workers in each group of pairs")
        return self

    @model_validator(mode="after")
    def _one_kind_one_origin(self) -> Self:
        if (self.compute_ms is None) == (self.bytes is None) or (self.bytes is None) != (self.alone_ms is None):
            raise ValueError("either compute_ms, or bytes and alone_ms together")
        if self.bytes is None and (self.pattern != "ring" or self.groups):
            raise ValueError("pattern and groups beside bytes")
        if self.parameters and (self.pattern != "ring" or self.groups):
            raise ValueError("bytes with this pattern: parameters are counted for one ring of all workers")
        if (self.source is None) == (self.guess is None):
            found = "neither source nor guess" if self.source is None else "both source and guess"
            expected = "source (paper, figure or table) or guess (how the number was chosen, in words)"
            raise PydanticCustomError("located", "{expected}", {"found": found, "expected": expected})
        return self

    def transfers(self, workers: int, size: int | None = None) -> tuple[Transfer, ...]:
        """Return the transfers among `workers` workers. A computing phase has none. `size` replaces `bytes`."""
        if self.bytes is None:
            return ()
        return all_transfers(
            self.pattern, self.bytes if size is None else size, self.groups or (tuple(range(workers)),)
        )

    def scale_by(self, by: "ProfileScaling") -> "Phase":
        """Return the phase with computing time, bytes and `alone_ms` multiplied by the factors `by`."""
        return self.model_copy(
            update={
                "compute_ms": None if self.compute_ms is None else self.compute_ms * by.compute,
                "bytes": None if self.bytes is None else max(round(self.bytes * by.bytes), 1),
                "alone_ms": None if self.alone_ms is None else self.alone_ms * by.bytes,
                "parameters": None,
            }
        )

    @property
    def demand_gbps(self) -> float:
        """Return the phase's payload rate on an idle network, in Gbit/s. It is 0 for a computing phase."""
        return 0.0 if self.bytes is None or self.alone_ms is None else self.bytes * 8 / self.alone_ms / 1e6

    @property
    def duration_ms(self) -> float:
        """Return the duration of the phase on an idle network, in ms."""
        return (self.compute_ms or 0.0) + (self.alone_ms or 0.0)


class ProfileScaling(Strict):
    """Factors of a profile's computing times and bytes. Sending rates do not change."""

    compute: Positive = Field(default=1.0, description="factor of computing times")
    bytes: Positive = Field(default=1.0, description="factor of bytes")


class Profile(Strict):
    """The phases, in order, of one iteration of a job that has the network to itself."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Name = Field(description="name of the profile")
    model: Text = Field(description="model that the profile is of")
    batch: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="examples for each worker in an iteration"
    )
    workers: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        default=None, description="number of workers that a job must have; only with `parameters` or `groups`"
    )
    source: Text | None = Field(default=None, description="paper, figure or table")
    phases: Annotated[Tuple[Phase], Field(min_length=1)] = Field(description="phases of an iteration, in order")

    @model_validator(mode="before")
    @classmethod
    def _count_bytes(cls, data: Any) -> Any:
        """Compute bytes by equation 3.1 if a file gives parameters."""
        phases, workers = (data.get(name) for name in ("phases", "workers")) if isinstance(data, Mapping) else (0, 0)
        if not isinstance(phases, list | tuple) or type(workers) is not int or workers < 2:
            return data
        return {**data, "phases": [_compute_bytes(phase, workers) for phase in phases]}

    @model_validator(mode="after")
    def _groups_need_workers(self) -> Self:
        if any(phase.parameters or phase.groups for phase in self.phases) != (self.workers is not None):
            raise ValueError("workers where a phase has parameters or groups, and only there")
        ranks = {rank for phase in self.phases for group in phase.groups or () for rank in group}
        if ranks and self.workers is not None and max(ranks) >= self.workers:
            raise ValueError(f"ranks below the number of workers, {self.workers}")
        if not any(phase.bytes and not phase.groups for phase in self.phases) and len(ranks) < (self.workers or 0):
            raise ValueError("every worker in a group of one phase at least")
        return self

    @model_validator(mode="after")
    def _parameters_are_bytes(self) -> Self:
        for phase in self.phases:
            if phase.parameters and phase.bytes != ring_allreduce_bytes(phase.parameters, self.workers or 0):
                raise ValueError("either bytes or parameters, not both")
        return self

    @model_validator(mode="after")
    def _phases_differ(self) -> Self:
        names = [phase.name for phase in self.phases]
        if len(set(names)) < len(names):
            raise ValueError("phases with different names")
        if self.alone_ms <= 0:
            raise ValueError("phases that take time")
        return self

    def scale_by(self, by: ProfileScaling) -> "Profile":
        """Return the profile with computing times and bytes multiplied by `by`. The result lacks `parameters`."""
        phases = tuple(phase.scale_by(by) for phase in self.phases)
        workers = self.workers if any(phase.groups for phase in phases) else None
        return self.model_copy(update={"phases": phases, "workers": workers})

    @property
    def compute_ms(self) -> float:
        """Return the computing time of an iteration, in ms."""
        return sum(phase.compute_ms or 0.0 for phase in self.phases)

    @property
    def comm_ms(self) -> float:
        """Return the communication time of an iteration on an idle network, in ms."""
        return sum(phase.alone_ms or 0.0 for phase in self.phases)

    @property
    def comm_bytes(self) -> int:
        """Return the sum of `bytes` of all phases, at the papers' scale.

        For ring phases, this is the payload that each worker sends.
        """
        return sum(phase.bytes or 0 for phase in self.phases)

    @property
    def alone_ms(self) -> float:
        """Return the duration of an iteration on an idle network, in ms."""
        return self.compute_ms + self.comm_ms


def _compute_bytes(phase: Any, workers: int) -> Any:
    """Return a phase as written with its bytes computed. Its own checks report other faults."""
    parameters = phase.get("parameters") if isinstance(phase, Mapping) else None
    if type(parameters) is not int or phase.get("bytes") is not None:
        return phase
    return {**phase, "bytes": ring_allreduce_bytes(parameters, workers)}
