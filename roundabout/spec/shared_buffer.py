# SPDX-License-Identifier: Apache-2.0
"""Model of a switch's shared packet memory."""

from typing import Annotated

from pydantic import Field

from roundabout.spec.base import Strict


class SharedBuffer(Strict):
    """The packet memory of a switch, which all its ports share by dynamic thresholds (Choudhury and Hahne, 1998).

    In a lossy topology, a queue may hold `alpha` times the free bytes; a packet beyond is dropped. In a lossless
    one, what came over a link may hold that much for each priority; a packet beyond waits in the link's headroom, and
    PFC pauses the link. Sizes are of frames without checksum, preamble and gap.
    """

    bytes: Annotated[int, Field(ge=1, le=10**12)] = Field(
        description="memory of each switch; headroom is a part of it that is not shared"
    )
    alpha: Annotated[float, Field(gt=0, le=1024)] = Field(
        description="a threshold's share of the free bytes; switches have powers of two, 1/128 to 8"
    )
    xon_offset_bytes: Annotated[int, Field(ge=0, le=10**12)] | None = Field(
        default=None,
        description="bytes below its threshold at which a paused link goes on; default: two full frames",
    )
    headroom_bytes: Annotated[int, Field(ge=0, le=10**12)] | None = Field(
        default=None,
        description="bytes reserved for each link and priority in use; default: what arrives after PFC has decided",
    )
