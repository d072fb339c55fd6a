# SPDX-License-Identifier: Apache-2.0
"""Model of traffic that belongs to no job."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from roundabout.spec.base import Name, NodeName, Strict, Tuple, drop_defaults
from roundabout.spec.routing.five_tuple import Flow
from roundabout.spec.transports import Transport

SIMULTANEOUS_KINDS = ("checkpoint", "incast")
"""Kinds whose senders send at the same instants."""
UNIT_KINDS = (*SIMULTANEOUS_KINDS, "kv-cache")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class CrossTraffic(Strict):
    """Traffic that belongs to no job, from hosts to others.

    `consistent` and `burst` are Salamy's web-search loads (Algorithms 1 and 2). `iperf` is a fixed number of long-lived
    flows (section 3.2). In `checkpoint` all senders periodically write at once, each in equal parts to all receivers.
    In `incast` all senders answer a client's requests at once, each with a block. In `kv-cache` senders transfer the
    keys and values of prompts to decoding hosts. `load_gbps` is the requested payload rate of all senders and receivers
    together.

    In a trial each sender has a cross traffic of its own.
    """

    model_config = ConfigDict(validate_by_alias=True)

    kind: Literal["consistent", "burst", "iperf", "checkpoint", "incast", "kv-cache"] = Field(
        description="Salamy's web-search loads, long-lived flows of iperf, checkpoints, storage incast, or KV caches"
    )
    senders: Annotated[
        Tuple[NodeName],
        Field(min_length=1),
        BeforeValidator(_as_list, json_schema_input_type=NodeName | Annotated[list[NodeName], Field(min_length=1)]),
    ] = Field(
        alias="from",
        description="host that sends, or hosts, which share the load evenly and are a cross traffic each, NAME-HOST",
    )
    receivers: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(alias="to", description="hosts that receive")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] = Field(
        description="requested payload rate of all senders to all receivers together"
    )
    unit_bytes: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="bytes of a sender's part of a checkpoint, of a server's block of an incast, or of a token's keys "
        "and values; default: published ones",
    )
    group: Name | None = Field(
        default=None,
        description="cross traffics of a group send at the same instants (`checkpoint`, `incast`); a list of senders "
        "is a group",
    )
    transport: Transport = Field(default=Transport(name="cubic"), description="congestion control of this traffic")
    gaps: Literal["poisson-process", "poisson-distributed"] = Field(
        default="poisson-process",
        description="gaps between flows of `consistent`: exponential, or Poisson-distributed as Salamy's text says",
    )
    sizes_between: Literal["steps", "linear"] = Field(
        default="steps", description="sizes of web-search flows: only the listed ones (Salamy), or linear interpolation"
    )
    volumes: Literal["drawn", "exact"] = Field(
        default="drawn",
        description="bytes between bursts: drawn from scaled sizes (Algorithm 2), or the same in every period",
    )
    connections: Literal["pooled", "fresh"] = Field(
        default="pooled",
        description="connections of web-search flows: reused with their windows, or a new one for each flow",
    )
    rail: Annotated[int, Field(ge=0, le=63)] = Field(
        default=0, description="NIC that sends, and NIC of the same number that receives, where hosts have several"
    )
    traffic_class: Literal["jobs", "own"] = Field(
        default="jobs",
        description="traffic class: that of jobs without a priority, or a class of its own (on a rack)",
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unsaid = {"traffic_class": "jobs", "rail": 0, "unit_bytes": None, "group": None}
        stored = drop_defaults(unsaid, handler(self))
        return stored | {"from": self.sender} if len(self.senders) == 1 else stored

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.unit_bytes is not None and self.kind not in UNIT_KINDS:
            raise ValueError(f"unit_bytes with a kind that has units ({', '.join(UNIT_KINDS)}), found {self.kind}")
        if self.group is not None and self.kind not in SIMULTANEOUS_KINDS:
            raise ValueError(
                f"group with a kind that sends at the same instants ({', '.join(SIMULTANEOUS_KINDS)}), "
                f"found {self.kind}"
            )
        return self

    @property
    def sender(self) -> str:
        """Return the host that sends. In a trial there is one."""
        return self.senders[0]

    def by_sender(self, name: str) -> Mapping[str, Self]:
        """Return the cross traffic `name` of each sender, by name. Senders share the load evenly."""
        if len(self.senders) == 1:
            return {name: self}
        group = (self.group or name) if self.kind in SIMULTANEOUS_KINDS else None
        own = {"load_gbps": self.load_gbps / len(self.senders), "group": group}
        return {f"{name}-{sender}": self.model_copy(update={"senders": (sender,), **own}) for sender in self.senders}

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the host pairs (sender, receiver) of the first sender, in the order of the receivers."""
        return tuple((self.sender, receiver) for receiver in self.receivers)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Return a flow to each receiver, between NICs of the rail."""
        return tuple(Flow(*pair, nics=(self.rail, self.rail)) for pair in self.pairs)

    @property
    def is_random(self) -> bool:
        """Return True if the trial's seed determines the flows of this traffic."""
        return self.kind != "iperf" and self.load_gbps > 0
