# SPDX-License-Identifier: Apache-2.0
"""Static neighbors of a host and static forwarding entries of a switch, set by one netlink message.

Each host has an entry for every other host, and each switch for every host. pyroute2 would need a round trip for each
of these hundreds of entries. This module sends all entries of a node in one datagram (rtnetlink(7)).
"""

import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_ERROR
from pyroute2.netlink.rtnl import RTM_NEWNEIGH, ndmsg

NDA_DST, NDA_LLADDR = 1, 2
PERMANENT = ndmsg.states["permanent"]
STATIC = ndmsg.states["noarp"]  # state of an entry that a bridge never ages or moves
BRIDGE_ENTRY = ndmsg.flags["master"]
HEADER = struct.Struct("=IHHII")  # nlmsghdr
ENTRY = struct.Struct("=BxxxiHBB")  # ndmsg
LARGEST_ANSWER = 1 << 16


@dataclass(frozen=True)
class Neighbor:
    """The device through which a hardware address is reached. Hosts' entries have an IPv4 address, bridges' do not."""

    ifindex: int
    mac: str
    address: str | None = None


def add_neighbors(neighbors: Sequence[Neighbor]) -> None:
    """Add the entries in the calling thread's network namespace. Raises OSError if the kernel refuses an entry."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        request = b"".join(_message(neighbour, number) for number, neighbour in enumerate(neighbors))
        netlink.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(request) + LARGEST_ANSWER)
        netlink.send(request)
        awaited = len(neighbors)
        while awaited:
            awaited -= _count_acknowledgements(netlink.recv(LARGEST_ANSWER))


def _message(neighbour: Neighbor, number: int) -> bytes:
    mac = _attribute(NDA_LLADDR, bytes.fromhex(neighbour.mac.replace(":", "")))
    if neighbour.address is None:
        body = ENTRY.pack(socket.AF_BRIDGE, neighbour.ifindex, STATIC, BRIDGE_ENTRY, 0) + mac
    else:
        address = _attribute(NDA_DST, socket.inet_aton(neighbour.address))
        body = ENTRY.pack(socket.AF_INET, neighbour.ifindex, PERMANENT, 0, 0) + address + mac
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    return HEADER.pack(HEADER.size + len(body), RTM_NEWNEIGH, flags, number, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _count_acknowledgements(answer: bytes) -> int:
    """Return the number of acknowledgements in a datagram."""
    count = offset = 0
    while offset < len(answer):
        length, kind, *_ = HEADER.unpack_from(answer, offset)
        assert kind == NLMSG_ERROR, "an rtnetlink request is answered by its status only"
        (error,) = struct.unpack_from("=i", answer, offset + HEADER.size)
        if error:
            raise OSError(-error, os.strerror(-error))
        count += 1
        offset += (length + 3) & ~3
    return count
