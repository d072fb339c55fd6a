# SPDX-License-Identifier: Apache-2.0
"""Shared buffers, weighted queues and RED of a trial's switches, as the engine takes them."""

from roundabout.models.packets.engine import Engine
from roundabout.models.packets.network import Ports, UnsupportedError
from roundabout.models.packets.structures import Structure, make_structure
from roundabout.spec import TrialSpec
from roundabout.spec.frames import frame_bytes
from roundabout.spec.pfc import required_headroom_bytes
from roundabout.spec.shared_buffer import SharedBuffer
from roundabout.spec.topology import Hop
from roundabout.spec.transports.queues import RED_WEIGHT

CNP_QUEUE = 7
"""Of each port (native/switches/port.hpp): it comes before all data."""


def sampled_queues(spec: TrialSpec) -> tuple[int, ...]:
    """Return the queues whose counters a trial records one by one: none if a port's counters suffice."""
    needed = spec.data_queues > 1 or spec.queue == "red" or spec.topology.buffer is not None
    return (*range(spec.data_queues), CNP_QUEUE) if needed else ()


def plan_buffers(spec: TrialSpec, ports: Ports) -> dict[str, tuple[Structure, dict[int, int]]]:
    """Return each switch's buffer and, by port, the headroom for each priority of the link that ends there.

    Raises:
        UnsupportedError: the headroom of all links and priorities in use leaves nothing to share.
    """
    buffer = spec.topology.buffer
    if buffer is None:
        return {}
    headroom_of: dict[str, dict[int, int]] = {switch: {} for switch in spec.topology.switches}
    for number, (ends, link) in enumerate(ports.directions):
        if ends[0] in headroom_of:
            headroom_of[ends[0]][number] = _headroom_bytes(spec, buffer, Hop(link, *ends))
    found = {}
    for switch, headroom in headroom_of.items():
        reserved = (spec.data_queues + 1) * sum(headroom.values())
        if reserved >= buffer.bytes:
            message = f"topology.buffer.bytes: found {buffer.bytes}, allowed is more than the {reserved} of headroom"
            queues = f"of {len(headroom)} links and {spec.data_queues + 1} priorities, CNPs' included, at {switch}"
            raise UnsupportedError(f"{message} {queues}", "give more bytes, or less headroom_bytes")
        offset = buffer.xon_offset_bytes
        plan = make_structure(
            "buffer_plan",
            shared_bytes=buffer.bytes - reserved,
            xon_offset_bytes=2 * frame_bytes(spec.topology.mtu_bytes) if offset is None else offset,
            alpha=buffer.alpha,
            is_lossless=not spec.may_drop,
        )
        found[switch] = (plan, headroom)
    return found


def _headroom_bytes(spec: TrialSpec, buffer: SharedBuffer, hop: Hop) -> int:
    if spec.may_drop:
        return 0
    return required_headroom_bytes(spec.topology, hop) if buffer.headroom_bytes is None else buffer.headroom_bytes


def add_switches(engine: Engine, spec: TrialSpec, ports: Ports) -> None:
    """Add what switches have beyond ports of their own to an engine. Raises UnsupportedError."""
    for plan, headroom in plan_buffers(spec, ports).values():
        engine.share_buffer(plan, headroom)
    hosts = spec.topology.host_numbers
    for number, ((sender, _), _) in enumerate(ports.directions):
        if sender not in hosts:
            if spec.dwrr:
                quantum = spec.dwrr.quantum_bytes or frame_bytes(spec.topology.mtu_bytes)
                engine.weigh_queues(number, [weight * quantum for weight in spec.dwrr.weights])
            if spec.queue == "red":
                engine.use_red(number, RED_WEIGHT if spec.red_weight is None else spec.red_weight)
    if queues := sampled_queues(spec):
        engine.sample_queues(queues)
