# SPDX-License-Identifier: Apache-2.0
"""Priority flow control (PFC, IEEE 802.1Qbb): the headroom that a link needs, and links that may pause each other."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from roundabout.spec.frames import AROUND_BYTES, CNP_BYTES, frame_bytes
from roundabout.spec.topology import Hop, Topology

CONTROL_BYTES = CNP_BYTES
"""A frame of control traffic: a CNP. A PFC frame of 64 bytes and an ACK are up to 14 bytes shorter."""


def headroom_bytes(line_bytes_per_s: float, round_trip_s: float, frame: int) -> int:
    """Return the bytes that may still arrive over a link after its switch has decided to pause it.

    The pause frame waits for a packet, is sent and delayed; then a packet is finished, and what is on the link arrives.
    """
    frames = 3 * (frame + AROUND_BYTES) + CONTROL_BYTES + AROUND_BYTES
    return round(round_trip_s * line_bytes_per_s + frames + frame)


def required_headroom_bytes(topology: Topology, hop: Hop) -> int:
    """Return the headroom of a link at its receiver without which a lossless queue may drop packets."""
    round_trip_s = (topology.hop_delay_us(hop) + topology.hop_delay_us(hop.turned)) / 1e6
    return headroom_bytes(hop.link.line_rate_gbps * 1e9 / 8, round_trip_s, frame_bytes(topology.mtu_bytes))


def largest_required_headroom(topology: Topology) -> tuple[int, str]:
    """Return the largest headroom that a link to a switch needs, in bytes, and the link's name."""
    hops = (Hop(link, *ends) for link in topology.links for ends in (link.ends, link.ends[::-1]))
    needs = {hop.link.name: required_headroom_bytes(topology, hop) for hop in hops if hop.receiver in topology.switches}
    link = max(needs, key=needs.__getitem__)
    return needs[link], link


def find_cycle(routes: Iterable[tuple[Hop, ...]]) -> tuple[Hop, ...]:
    """Return links that form a cyclic buffer dependency (Dally and Seitz, 1987), or nothing if the routes have none.

    A link waits for the next link of each route. In a cycle of lossless links each can pause the one before it.
    """
    waits = TopologicalSorter[Hop]()
    for route in routes:
        for hop, following in pairwise(route):
            waits.add(following, hop)
    try:
        waits.prepare()
    except CycleError as error:
        cycle = error.args[1][1:]
        first = min(range(len(cycle)), key=lambda place: cycle[place].link.name)
        return (*cycle[first:], *cycle[:first])
    return ()
