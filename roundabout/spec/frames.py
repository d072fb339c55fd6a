# SPDX-License-Identifier: Apache-2.0
"""Sizes of the headers around TCP payload on Ethernet, in bytes."""

SEGMENT_HEADER_BYTES = 52
"""IPv4 and TCP headers within the MTU: 20 bytes, and 32 bytes with timestamps."""
FRAME_HEADER_BYTES = 14
"""Ethernet header as interfaces, queues and captures count it, without the checksum."""
HEADER_BYTES = FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES
"""All header bytes of a packet, as interfaces count them."""
AROUND_BYTES = 24
"""Further bytes of a frame on the link: checksum 4, preamble 8, inter-frame gap 12."""
ROCE_HEADER_BYTES = 20 + 8 + 12 + 4
"""IPv4, UDP, base transport header, invariant CRC: what a packet of a message is longer than its payload."""
CNP_BYTES = FRAME_HEADER_BYTES + ROCE_HEADER_BYTES + 16
"""A CNP's frame, as interfaces count it; 16 bytes are reserved in it."""


def segment_bytes(mtu_bytes: int) -> int:
    """Return the payload bytes of a full TCP segment at this MTU."""
    return mtu_bytes - SEGMENT_HEADER_BYTES


def frame_bytes(mtu_bytes: int) -> int:
    """Return the bytes of a full frame at this MTU, as interfaces count them."""
    return mtu_bytes + FRAME_HEADER_BYTES


def payload_share(mtu_bytes: int) -> float:
    """Return the largest share of a link's rate, 0 to 1, that TCP payload can have at this MTU."""
    return segment_bytes(mtu_bytes) / (frame_bytes(mtu_bytes) + AROUND_BYTES)


def roce_payload_bytes(mtu_bytes: int) -> int:
    """Return the payload bytes of a full RoCEv2 packet at an interface's MTU: the largest path MTU of InfiniBand.

    Linux leaves room for 96 bytes of headers (iboe_get_mtu and ib_mtu_enum_to_int in include/rdma).
    """
    return max((each for each in (256, 512, 1024, 2048, 4096) if each + 96 <= mtu_bytes), default=256)


def roce_payload_share(mtu_bytes: int) -> float:
    """Return the largest share of a link's rate, 0 to 1, that RoCEv2 payload of long messages can have at this MTU."""
    payload = roce_payload_bytes(mtu_bytes)
    return payload / (payload + ROCE_HEADER_BYTES + FRAME_HEADER_BYTES + AROUND_BYTES)
