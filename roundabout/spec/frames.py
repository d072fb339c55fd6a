# SPDX-License-Identifier: Apache-2.0
"""Header bytes of an Ethernet frame beside TCP's payload."""

SEGMENT_HEADER_BYTES = 52
"""IPv4 20, TCP 32 (with timestamps): what a segment is shorter than the MTU."""
FRAME_HEADER_BYTES = 14
"""Of Ethernet, as interfaces, queues and captures count it: without the checksum."""
HEADER_BYTES = FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES
"""What a packet is longer than its payload, as interfaces count it."""
AROUND_BYTES = 24
"""What a frame takes of a link beyond that: checksum 4, preamble 8, gap 12."""


def segment_bytes(mtu_bytes: int) -> int:
    """Return the payload of a full TCP segment."""
    return mtu_bytes - SEGMENT_HEADER_BYTES


def frame_bytes(mtu_bytes: int) -> int:
    """Return the frame of a full packet, as interfaces count it."""
    return mtu_bytes + FRAME_HEADER_BYTES


def payload_share(mtu_bytes: int) -> float:
    """Return the largest share of a link's rate that TCP payload can have."""
    return segment_bytes(mtu_bytes) / (frame_bytes(mtu_bytes) + AROUND_BYTES)
