# SPDX-License-Identifier: Apache-2.0
"""Model of traffic that belongs to no job."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from roundabout.spec.base import NodeName, Strict, Tuple, drop_defaults
from roundabout.spec.routing.five_tuple import Flow
from roundabout.spec.transports import Transport


class CrossTraffic(Strict):
    """Traffic that belongs to no job, from one host to others.

    `consistent` and `burst` are Salamy's web-search loads (Algorithms 1 and 2). `iperf` is a fixed number of long-lived
    flows (section 3.2). `load_gbps` is the requested payload rate to all receivers together.
    """

    model_config = ConfigDict(validate_by_alias=True)

    kind: Literal["consistent", "burst", "iperf"] = Field(
        description="Salamy's web-search loads, or long-lived flows of iperf"
    )
    sender: NodeName = Field(alias="from", description="host that sends")
    receivers: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(alias="to", description="hosts that receive")
    load_gbps: Annotated[float, Field(ge=0, le=1e4)] = Field(
        description="requested payload rate to all receivers together"
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
        return drop_defaults({"traffic_class": "jobs", "rail": 0}, handler(self))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the host pairs (sender, receiver), in the order of the receivers."""
        return tuple((self.sender, receiver) for receiver in self.receivers)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Return a flow to each receiver, between NICs of the rail."""
        return tuple(Flow(*pair, nics=(self.rail, self.rail)) for pair in self.pairs)

    @property
    def is_random(self) -> bool:
        """Return True if the trial's seed determines the flows of this traffic."""
        return self.kind != "iperf" and self.load_gbps > 0
