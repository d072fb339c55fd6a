# SPDX-License-Identifier: Apache-2.0
"""The rule by which a switch chooses one of several cables.

A flow takes a shortest path. At each switch where several cables lead on, a hash chooses one of them. Where hosts have
several NICs, the flow's channel chooses those at its ends. Some rules choose for each packet or for each flowlet: then
a flow has no path of its own, and its packets may overtake each other.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from roundabout.spec.base import Positive, Strict, drop_defaults
from roundabout.spec.routing.five_tuple import FiveTuple, hash_parts

SPREADING = ("spray", "flowlet", "adaptive", "bitmap", "reps")
"""Rules by which packets of one flow may take different paths."""

DEFAULT_ENTROPIES = 128
"""Of uet-htsim's scenes of load balancing."""


class Routing(Strict):
    """The rule by which switches choose among cables that lead to a receiver on equally short paths.

    The thesis' switches forward by input port and destination (`static`). They print no assignment, so a seeded hash
    draws it. Collisions depend on the seed; a result for one seed is an example.
    """

    name: Literal["static", "ecmp", "rail", "spray", "flowlet", "adaptive", "bitmap", "reps"] = Field(
        description="`static`: by input port and destination host; `ecmp`: by a hash of a flow's five-tuple; `rail`: "
        "as `ecmp`, with several NICs a host, where a flow stays on its rail if both ends are on it; `spray`: each "
        "packet takes one of the equal paths, drawn by its sender; `flowlet`: a flow draws another path after a "
        "silence of `gap_us`; `adaptive`: each switch chooses the port with the shortest queue; `bitmap`: a sender "
        "takes its `entropies` in turn, and skips those from which marks or losses came; `reps`: a packet takes the "
        "entropy of one that was acknowledged without a mark, or else draws one. With the last five, hosts may have "
        "several NICs, too"
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = Field(
        default=1, description="of `static`, `ecmp` and `rail`: seed of the switches' hashes"
    )
    hash: Literal["same", "per-switch"] = Field(
        default="per-switch",
        description="of `ecmp` and `rail`; with the same hash on all switches flows polarize: a switch chooses among "
        "its cables as the switch before it has chosen",
    )

    pxn: bool = Field(
        default=False,
        description="of `rail`; whether data for another rail go to the GPU of that rail by NVLink first, which takes "
        "no time here, as NCCL's PXN does; default: they cross the spine",
    )
    gap_us: Positive | None = Field(
        default=None, description="of `flowlet`: silence after which a flow draws another path, in us"
    )
    entropies: Annotated[int, Field(ge=2, le=2**16)] = Field(
        default=DEFAULT_ENTROPIES,
        description="of `bitmap` and `reps`: number of a flow's entropies, by which its sender chooses paths; a power "
        "of two; default: that of uet-htsim's scenes",
    )
    planes: bool = Field(
        default=False,
        description="of `spray` and `adaptive`: whether a flow's packets take all NICs of its hosts in turn, each to "
        "the receiver's NIC of the same number; default: a flow keeps its NICs, as with `rail`",
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        since = {"pxn": False, "gap_us": None, "entropies": DEFAULT_ENTROPIES, "planes": False}
        return drop_defaults(since, handler(self))

    @model_validator(mode="after")
    def _has_the_fields_of_its_rule(self) -> Self:
        if (self.gap_us is None) == (self.name == "flowlet"):
            raise ValueError("gap_us with `flowlet`, and with it alone")
        if self.planes and self.name not in {"spray", "adaptive"}:
            raise ValueError("planes with `spray` or `adaptive` alone")
        if self.entropies != DEFAULT_ENTROPIES and not self.learns_paths:
            raise ValueError("entropies with `bitmap` or `reps` alone")
        if self.entropies & (self.entropies - 1):
            raise ValueError("entropies: a power of two")
        return self

    @property
    def learns_paths(self) -> bool:
        """Return True if senders choose paths by the marks and losses of earlier packets."""
        return self.name in {"bitmap", "reps"}

    @property
    def spreads_packets(self) -> bool:
        """Return True if packets of one flow may take different paths."""
        return self.name in SPREADING

    def choose(self, flow: FiveTuple, switch: str, entered_by: str, count: int) -> int:
        """Return which of `count` cables a flow takes from `switch`, which it entered by the cable `entered_by`."""
        if count == 1:
            return 0
        if self.name == "static":
            return hash_parts(self.seed, switch, entered_by, flow.receiver) % count
        return hash_parts(self.seed, switch if self.hash == "per-switch" else "", *flow) % count
