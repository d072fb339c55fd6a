# SPDX-License-Identifier: Apache-2.0
"""The rule by which a switch chooses one of several cables.

A flow takes a shortest path. At each switch where several cables lead on, a hash chooses one of them. Where hosts have
several NICs, the flow's channel chooses those at its ends.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from roundabout.spec.base import Strict, drop_defaults
from roundabout.spec.routing.five_tuple import FiveTuple, hash_parts


class Routing(Strict):
    """The rule by which switches choose among cables that lead to a receiver on equally short paths.

    The thesis' switches forward by input port and destination (`static`). They print no assignment, so a seeded hash
    draws it. Collisions depend on the seed; a result for one seed is an example.
    """

    name: Literal["static", "ecmp", "rail"] = Field(
        description="`static`: by input port and destination host; `ecmp`: by a hash of a flow's five-tuple; `rail`: "
        "as `ecmp`, with several NICs a host, where a flow stays on its rail if both ends are on it"
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = Field(default=1, description="seed of the switches' hashes")
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

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        return drop_defaults({"pxn": False}, handler(self))

    def choose(self, flow: FiveTuple, switch: str, entered_by: str, count: int) -> int:
        """Return which of `count` cables a flow takes from `switch`, which it entered by the cable `entered_by`."""
        if count == 1:
            return 0
        if self.name == "static":
            return hash_parts(self.seed, switch, entered_by, flow.receiver) % count
        return hash_parts(self.seed, switch if self.hash == "per-switch" else "", *flow) % count
