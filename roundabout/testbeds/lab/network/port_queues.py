# SPDX-License-Identifier: Apache-2.0
"""Queues of a lab's ports and NICs: HTB classes at the drain rate, with a FIFO of limited length each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from pyroute2 import IPRoute
from pyroute2.netlink.rtnl import tcmsg

from roundabout.runner.hosts.host_group import Port
from roundabout.spec.frames import frame_bytes, segment_bytes
from roundabout.spec.topology import Topology
from roundabout.spec.transports.queues import drop_tail_bytes
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab.calibration.calibration import Calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network.kernel_refusal import explain_refusal
from roundabout.testbeds.lab.network.layout import HostNic, Layout
from roundabout.testbeds.lab.network.namespaces import run_inside

MAX_QUEUE_BYTES = 1 << 32  # bound of a FIFO's length, which has 32 bits
MIN_MTU_BYTES = 1500  # shorter packets cost more CPU time, and more headers
HTB_ROOT, HTB_LINK, HTB_DATA = 0x10000, 0x10001, 0x10002
HTB_CNPS = 0x10003
HTB_FIRST = 0x10010  # first of the handles of queues that are served before HTB_DATA (ecn.h)
HTB_LEAST_SHARE = 1e-4  # guaranteed share of the rate, which HTB requires of a class and serves before priorities
CNPS_SHARE = 0.1  # guaranteed share of the rate for CNPs, far more than they need; further CNPs wait with data
CNPS_LIMIT_BYTES = 1 << 20
# Filter for ACKs that stand for CNPs. An ECT ACK is of a congestion control that needs ECN, and echoes marks. It has 52
# bytes of IP with ECT(0), protocol TCP, 32 bytes of TCP header, so no data, and neither SYN nor FIN nor RST.
CNP_KEYS = ["0x00020034/0x0003ffff+0", "0x00060000/0x00ff0000+8", "0x80000000/0xf0070000+32"]
ETH_P_ALL = 0x0003

# pyroute2 supports only pfifo. bfifo has the same option, a limit, which counts bytes and not packets.
tcmsg.plugins["bfifo"] = tcmsg.plugins["pfifo"]


@dataclass(frozen=True)
class Queue:
    """The shaping of a port: its drain rate including headers, and the length of the FIFO of each class.

    Of several `classes` of data, a later class is served before earlier classes.
    """

    drain_bytes_per_s: int
    limit_bytes: int
    classes: int = 1

    @property
    def fifos(self) -> dict[int, int]:
        """Return the length of each FIFO, in bytes, by its class's handle, in the order of service."""
        own = [HTB_DATA, *(HTB_FIRST + place for place in range(1, self.classes))]
        return {HTB_CNPS: CNPS_LIMIT_BYTES, **dict.fromkeys(own[::-1], self.limit_bytes)}


def port_queues(
    layout: Layout, calibration: Calibration, scale: float, dilation: float = 1.0, trial: TrialSpec | None = None
) -> dict[Port, Queue]:
    """Return the queue of every port. It drains at the port's payload rate, plus headers, divided by `scale`.

    The queue is deep for a lossless topology. `trial` may request another length than the topology's, and classes.
    """
    topology, bytes_scale = layout.topology, scale / dilation
    classes = 1 + max(trial.queue_of_priority.values(), default=0) if trial else 1
    mtu = mtu_bytes(topology, bytes_scale)
    short = trial is not None and trial.queue == "drop-tail" and topology.queue_bytes is None

    def limit(port: Port) -> int:
        if short:
            return round(drop_tail_bytes(port.payload_rate_gbps) / bytes_scale)
        return _limit_bytes(topology, calibration, bytes_scale)

    for port in layout.ports:
        _check_limit(limit(port), mtu, bytes_scale)
    return {
        port: Queue(_drain_bytes_per_s(port.payload_rate_gbps, scale, mtu), limit(port), classes)
        for port in layout.ports
    }


def nic_queues(layout: Layout, calibration: Calibration, scale: float, dilation: float = 1.0) -> dict[HostNic, Queue]:
    """Return the queues of NICs whose links have `nic_queue`. These queues do not drop packets."""
    limit = calibration.queue_bytes.lossless
    mtu = mtu_bytes(layout.topology, scale / dilation)
    return {
        nic: Queue(_drain_bytes_per_s(cable.link.payload_rate_gbps, scale, mtu), limit)
        for cable in layout.cables
        if cable.link.nic_queue and isinstance(nic := cable.ends[1], HostNic)
    }


def _limit_bytes(topology: Topology, calibration: Calibration, bytes_scale: float) -> int:
    sizes = calibration.queue_bytes
    if topology.queue_bytes is not None:
        return round(topology.queue_bytes / bytes_scale)
    return sizes.lossless if topology.queue == "lossless" else sizes.lossy


def _check_limit(found: int, mtu: int, bytes_scale: float) -> None:
    """Raise LabError for a queue that holds no packet, or more bytes than the kernel counts."""
    if not frame_bytes(mtu) <= found < MAX_QUEUE_BYTES:
        raise LabError(
            f"a port's queue of {found * bytes_scale:.10g} bytes has {found} in this lab, "
            f"expected {frame_bytes(mtu)} (one packet) to {MAX_QUEUE_BYTES - 1}",
            "choose other queue_bytes, --scale or --dilation",
        )


def mtu_bytes(topology: Topology, bytes_scale: float) -> int:
    """Return the MTU of the lab's devices: the topology's divided by `bytes_scale`, but at least MIN_MTU_BYTES.

    If one packet stands for several, shaping compensates the missing headers, so that payload rates stay correct.
    """
    return max(MIN_MTU_BYTES, round(topology.mtu_bytes / bytes_scale))


def _drain_bytes_per_s(payload_rate_gbps: float, scale: float, mtu: int) -> int:
    return round(payload_rate_gbps * 1e9 / 8 / scale * frame_bytes(mtu) / segment_bytes(mtu))


def update_queues(queues: Mapping[Port, Queue], pids: Mapping[str, int], burst_bytes: int) -> None:
    """Change the queues of an existing lab's ports.

    FIFOs of equal lengths are kept, with their packets, and only drain at the new rate. Packets in others are lost.

    Raises:
        LabError: the kernel refused.
    """
    for switch in {port.switch for port in queues}:
        own = {port: queue for port, queue in queues.items() if port.switch == switch}
        run_inside(pids[switch], partial(_renew_ports, own, burst_bytes))


def _renew_ports(queues: Mapping[Port, Queue], burst_bytes: int) -> None:
    with IPRoute() as netlink:
        for port, queue in queues.items():
            with explain_refusal(f"the queue of {port.switch}'s port to {port.towards}"):
                if read_fifos(netlink, port.ifindex) == queue.fifos:
                    _set_classes(netlink, "change-class", port.ifindex, queue, burst_bytes)
                else:
                    netlink.tc("del", "htb", port.ifindex, HTB_ROOT)
                    shape_device(netlink, port.ifindex, queue, burst_bytes)


def find_differences(queues: Mapping[Port, Queue], pids: Mapping[str, int]) -> list[str]:
    """Return a line for each port whose FIFOs differ from `queues`."""
    found: dict[Port, dict[int, int]] = {}
    for switch in {port.switch: None for port in queues}:
        own = [port for port in queues if port.switch == switch]
        found |= run_inside(pids[switch], partial(_read_port_fifos, own))
    return [
        f"{port.switch}'s port to {port.towards}: found queues of {_by_class(found[port])} bytes, "
        f"expected {_by_class(queue.fifos)}"
        for port, queue in queues.items()
        if found[port] != queue.fifos
    ]


def _by_class(limits: Mapping[int, int]) -> list[int]:
    return [limit for _, limit in sorted(limits.items())]


def _read_port_fifos(ports: Iterable[Port]) -> dict[Port, dict[int, int]]:
    with IPRoute() as netlink:
        return {port: read_fifos(netlink, port.ifindex) for port in ports}


def read_fifos(netlink: IPRoute, ifindex: int) -> dict[int, int]:
    """Return the length of each FIFO of a device, in bytes, by its class's handle."""
    fifos = (each for each in netlink.get_qdiscs(index=ifindex) if each.get_attr("TCA_KIND") == "bfifo")
    return {each["parent"]: each.get_attr("TCA_OPTIONS")["limit"] for each in fifos}


def shape_device(netlink: IPRoute, ifindex: int, queue: Queue, burst_bytes: int) -> None:
    """Limit a device to its queue's drain rate, with the class that stands for CNPs before all others.

    On RoCE networks CNPs have a priority of their own. Several classes of data borrow nearly all of the link's rate
    from it, and it lends to the first.
    """
    netlink.tc("add", "htb", ifindex, HTB_ROOT, default=HTB_DATA & 0xFFFF)
    _set_classes(netlink, "add-class", ifindex, queue, burst_bytes)
    for handle, limit in queue.fifos.items():
        netlink.tc("add", "bfifo", ifindex, parent=handle, limit=limit)
    cnps = {"protocol": ETH_P_ALL, "prio": 1, "target": HTB_CNPS, "keys": CNP_KEYS}
    netlink.tc("add-filter", "u32", ifindex, parent=HTB_ROOT, **cnps)


def _set_classes(netlink: IPRoute, command: str, ifindex: int, queue: Queue, burst_bytes: int) -> None:
    """Add or change the HTB classes of a queue: that of the whole link first, then those of its FIFOs."""
    burst = {"burst": burst_bytes, "cburst": burst_bytes, "quantum": burst_bytes}
    rate = queue.drain_bytes_per_s
    netlink.tc(command, "htb", ifindex, HTB_LINK, parent=HTB_ROOT, rate=rate, **burst)
    data_share = 1 - CNPS_SHARE if queue.classes == 1 else HTB_LEAST_SHARE
    for prio, handle in enumerate(queue.fifos):
        share = CNPS_SHARE if handle == HTB_CNPS else data_share
        rates = {"rate": round(share * rate), "ceil": rate}
        netlink.tc(command, "htb", ifindex, handle, parent=HTB_LINK, prio=prio, **rates, **burst)
