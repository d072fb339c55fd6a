# SPDX-License-Identifier: Apache-2.0
"""Model of packet captures on hosts."""

from typing import Annotated

from pydantic import Field

from roundabout.spec.base import NodeName, Strict, Tuple


class Capture(Strict):
    """Packet captures by tcpdump on some hosts during each trial, with limits on their size."""

    hosts: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(description="hosts whose packets are captured")
    snap_bytes: Annotated[int, Field(ge=64, le=65_535)] = Field(
        default=128, description="bytes captured of each packet"
    )
    budget_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="limit of raw files of a host in a trial, MB; the oldest packets are deleted"
    )
    keep_mb: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=2000, description="limit of raw files of the run, MB; the oldest trials' are deleted, tables stay"
    )
