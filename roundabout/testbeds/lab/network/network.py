# SPDX-License-Identifier: Apache-2.0
"""Devices, addresses and queues of a lab, by netlink."""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute, NetlinkError
from pyroute2.netlink.rtnl import tcmsg

from roundabout.runner.hosts.host_group import Port
from roundabout.spec.experiment import TrialSpec
from roundabout.spec.frames import frame_bytes, segment_bytes
from roundabout.spec.topology import Topology
from roundabout.spec.transports.queues import drop_tail_bytes
from roundabout.testbeds.lab.calibration.calibration import Calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import static_neighbors
from roundabout.testbeds.lab.network.layout import BRIDGE_IFINDEX, TAP_INTERFACE, Cable, Layout, LinkEnd
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.network.static_neighbors import Neighbor

MOST_QUEUE_BYTES = 1 << 32  # of a FIFO, whose limit has 32 bits
LEAST_MTU_BYTES = 1500  # shorter packets would cost more CPU, and headers
MULTICAST_OFF = {"br_mcast_snooping": 0, "br_mcast_querier": 0, "br_mcast_router": 0}
HTB_ROOT, HTB_LINK, HTB_DATA = 0x10000, 0x10001, 0x10002
HTB_CNPS = 0x10003
HTB_FIRST = 0x10010  # and so on, for queues that are served before HTB_DATA (ecn.h)
HTB_LEAST_SHARE = 1e-4  # of the rate: HTB knows no class without one of its own, which it has before any priority
CNPS_SHARE = 0.1  # of the rate, far more than they need; beyond it they would wait with data
CNPS_LIMIT_BYTES = 1 << 20
# An ACK that is ECT is of a congestion control that needs ECN, and brings echoes of marks, as a CNP would: 52 bytes of
# IP with ECT(0); TCP; 32 bytes of header, so no data, and neither SYN nor FIN nor RST.
CNP_KEYS = ["0x00020034/0x0003ffff+0", "0x00060000/0x00ff0000+8", "0x80000000/0xf0070000+32"]
CLSACT_INGRESS, CLSACT_EGRESS = 0xFFFFFFF2, 0xFFFFFFF3
ETH_P_ALL = 0x0003
BEHIND_MARKING = 2  # of filters; `switchport` takes 1

# pyroute2 knows pfifo only; the two have the same options, a limit, counted in packets or in bytes.
tcmsg.plugins["bfifo"] = tcmsg.plugins["pfifo"]


@dataclass(frozen=True)
class Queue:
    """The shaping of a port: its drain rate, headers included, and the length of each of its classes.

    Of several `classes` of data, the last one is served first, and each before those that come before it.
    """

    drain_bytes_per_s: int
    limit_bytes: int
    classes: int = 1

    @property
    def fifos(self) -> dict[int, int]:
        """Return the length of its FIFOs, in bytes, by their classes' handles; the first is served first."""
        own = [HTB_DATA, *(HTB_FIRST + place for place in range(1, self.classes))]
        return {HTB_CNPS: CNPS_LIMIT_BYTES, **dict.fromkeys(own[::-1], self.limit_bytes)}


def port_queues(
    layout: Layout, calibration: Calibration, scale: float, dilation: float = 1.0, trial: TrialSpec | None = None
) -> dict[Port, Queue]:
    """Return the queue of every port: its payload rate, with headers, divided by the scale.

    Deep if nothing may be lost.

    A trial may ask for another length than its topology has, and for classes of its own.
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


def nic_queues(layout: Layout, calibration: Calibration, scale: float, dilation: float = 1.0) -> dict[str, Queue]:
    """Return the queues of hosts whose NIC limits them to their link's rate, by host. Packets in them are not lost."""
    limit = calibration.queue_bytes.lossless
    mtu = mtu_bytes(layout.topology, scale / dilation)
    return {
        cable.ends[1].node: Queue(_drain_bytes_per_s(cable.link.payload_rate_gbps, scale, mtu), limit)
        for cable in layout.cables
        if cable.link.nic_queue
    }


def _limit_bytes(topology: Topology, calibration: Calibration, bytes_scale: float) -> int:
    sizes = calibration.queue_bytes
    if topology.queue_bytes is not None:
        return round(topology.queue_bytes / bytes_scale)
    return sizes.lossless if topology.queue == "lossless" else sizes.lossy


def _check_limit(found: int, mtu: int, bytes_scale: float) -> None:
    """Raise LabError for a queue that holds no packet, or more bytes than the kernel counts."""
    if not frame_bytes(mtu) <= found < MOST_QUEUE_BYTES:
        raise LabError(
            f"a port's queue of {found * bytes_scale:.10g} bytes has {found} in this lab, "
            f"expected {frame_bytes(mtu)} (one packet) to {MOST_QUEUE_BYTES - 1}",
            "choose other queue_bytes, --scale or --dilation",
        )


def mtu_bytes(topology: Topology, bytes_scale: float) -> int:
    """Return the MTU of the lab's devices: the topology's, divided like all bytes as far as packets may be so short.

    Where one stands for many, headers are shaped away: a link's payload rate is the topology's all the same.
    """
    return max(LEAST_MTU_BYTES, round(topology.mtu_bytes / bytes_scale))


def _drain_bytes_per_s(payload_rate_gbps: float, scale: float, mtu: int) -> int:
    return round(payload_rate_gbps * 1e9 / 8 / scale * frame_bytes(mtu) / segment_bytes(mtu))


def build(  # noqa: PLR0913 - what a lab is made of
    layout: Layout,
    queues: Mapping[Port, Queue],
    nic_queues: Mapping[str, Queue],
    pids: Mapping[str, int],
    *,
    burst_bytes: int,
    mtu: int,
) -> None:
    """Make bridges, veth pairs, queues and addresses inside the namespaces of the processes `pids`.

    Raises:
        LabError: the kernel refused something; its namespaces still have to be taken down.
    """
    for switch in layout.topology.switches:
        run_inside(pids[switch], partial(_make_bridge, switch))
    with ExitStack() as stack:
        names = {node: stack.enter_context(_namespace(pid)) for node, pid in pids.items()}
        netlink = stack.enter_context(IPRoute())
        for cable in layout.cables:
            with explain_refusal(f"link {cable.link.name}"):
                _make_cable(netlink, cable, names, mtu)
    for switch in layout.topology.switches:
        own = {port: queue for port, queue in queues.items() if port.switch == switch}
        run_inside(pids[switch], partial(_make_ports, own, burst_bytes, layout))
    for host in layout.hosts:
        run_inside(pids[host], partial(_address, host, layout))
    for host, queue in nic_queues.items():
        run_inside(
            pids[host], partial(_make_nic_queue, host, layout.ifindexes[host], queue, burst_bytes=burst_bytes, mtu=mtu)
        )
    for cable in layout.cables:
        for end in cable.ends:
            _steer_to_one_cpu(pids[end.node], end.interface)


def _make_bridge(name: str) -> None:
    with IPRoute() as netlink, explain_refusal(f"the bridge of switch {name}"):
        netlink.link(
            "add", ifname=name, index=BRIDGE_IFINDEX, kind="bridge", state="up", br_stp_state=0, **MULTICAST_OFF
        )


def _make_cable(netlink: IPRoute, cable: Cable, names: Mapping[str, int], mtu: int) -> None:
    """Make both ends at once, each where it belongs: the machine's own namespace never sees them."""
    near, far = cable.ends
    # pyroute2's own `peer=` has no place for the far end's index.
    peer = {"index": far.ifindex, "attrs": _attributes(far, names, mtu)}
    kind = [["IFLA_INFO_KIND", "veth"], ["IFLA_INFO_DATA", {"attrs": [["VETH_INFO_PEER", peer]]}]]
    netlink.link("add", index=near.ifindex, **dict(_attributes(near, names, mtu)), IFLA_LINKINFO={"attrs": kind})


def _attributes(end: LinkEnd, names: Mapping[str, int], mtu: int) -> list[list[Any]]:
    return [
        ["IFLA_IFNAME", end.interface],
        ["IFLA_ADDRESS", end.mac],
        ["IFLA_NET_NS_FD", names[end.node]],
        ["IFLA_MTU", mtu],
        ["IFLA_NUM_TX_QUEUES", 1],
        ["IFLA_NUM_RX_QUEUES", 1],
    ]


def _make_ports(queues: Mapping[Port, Queue], burst_bytes: int, layout: Layout) -> None:
    with IPRoute() as netlink:
        for port, queue in queues.items():
            with explain_refusal(f"the queue of {port.switch}'s port to {port.towards}"):
                netlink.link("set", index=port.ifindex, master=BRIDGE_IFINDEX, state="up")
                _shape_device(netlink, port.ifindex, queue, burst_bytes)
    with explain_refusal("static forwarding entries"):
        # Not left to learning: until a host has answered, what it gets would be flooded, and a flooded packet is a
        # shared copy, which cannot be marked.
        static_neighbors.add_neighbors(
            [Neighbor(port.ifindex, layout.macs[host]) for port in queues for host in layout.hosts_behind[port.ifindex]]
        )


def _make_nic_queue(host: str, ifindex: int, queue: Queue, *, burst_bytes: int, mtu: int) -> None:
    with IPRoute() as netlink, explain_refusal(f"the queue of {host}'s NIC"):
        _shape_device(netlink, ifindex, queue, burst_bytes)
        _make_tap(netlink, ifindex, mtu)


def _make_tap(netlink: IPRoute, ifindex: int, mtu: int) -> None:
    """Show a capture the packets of a host's NIC queue before they wait there, where a server's tcpdump sees them.

    The kernel taps a device behind its queue. A mirror of it is a veth, whose packets are discarded at its other end.
    What switches mark is marked before.
    """
    peer = {"ifname": f"{TAP_INTERFACE}-end", "mtu": mtu}
    netlink.link("add", ifname=TAP_INTERFACE, kind="veth", state="up", mtu=mtu, peer=peer)
    tap, end = (netlink.link_lookup(ifname=name)[0] for name in (TAP_INTERFACE, f"{TAP_INTERFACE}-end"))
    netlink.link("set", index=end, state="up")
    mirror = {"kind": "mirred", "direction": "egress", "action": "mirror", "ifindex": tap}
    netlink.tc("add", "clsact", ifindex)
    for hook in (CLSACT_INGRESS, CLSACT_EGRESS):
        everything = {"protocol": ETH_P_ALL, "prio": BEHIND_MARKING, "target": 0, "keys": ["0x0/0x0+0"]}
        netlink.tc("add-filter", "u32", ifindex, parent=hook, action=[mirror], **everything)


def update_queues(queues: Mapping[Port, Queue], pids: Mapping[str, int], burst_bytes: int) -> None:
    """Give ports of a standing lab these queues. An equal queue stays; packets in another one are lost.

    Raises:
        LabError: the kernel refused.
    """
    for switch in {port.switch for port in queues}:
        own = {port: queue for port, queue in queues.items() if port.switch == switch}
        run_inside(pids[switch], partial(_renew_ports, own, burst_bytes))


def _renew_ports(queues: Mapping[Port, Queue], burst_bytes: int) -> None:
    with IPRoute() as netlink:
        for port, queue in queues.items():
            if read_fifos(netlink, port.ifindex) != queue.fifos:
                with explain_refusal(f"the queue of {port.switch}'s port to {port.towards}"):
                    netlink.tc("del", "htb", port.ifindex, HTB_ROOT)
                    _shape_device(netlink, port.ifindex, queue, burst_bytes)


def find_differences(queues: Mapping[Port, Queue], pids: Mapping[str, int]) -> list[str]:
    """Describe the ports whose FIFOs are not these."""
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
    """Return the length of a device's FIFOs, in bytes, by their classes' handles."""
    fifos = (each for each in netlink.get_qdiscs(index=ifindex) if each.get_attr("TCA_KIND") == "bfifo")
    return {each["parent"]: each.get_attr("TCA_OPTIONS")["limit"] for each in fifos}


def _shape_device(netlink: IPRoute, ifindex: int, queue: Queue, burst_bytes: int) -> None:
    """Limit a device to its queue's drain rate, with the class that stands for CNPs before all others.

    On RoCE networks CNPs have a priority of their own. Several classes of data borrow nearly all of the link's rate
    from it, and it lends to the first.
    """
    burst = {"burst": burst_bytes, "cburst": burst_bytes, "quantum": burst_bytes}
    rate = queue.drain_bytes_per_s
    netlink.tc("add", "htb", ifindex, HTB_ROOT, default=HTB_DATA & 0xFFFF)
    netlink.tc("add-class", "htb", ifindex, HTB_LINK, parent=HTB_ROOT, rate=rate, **burst)
    data_share = 1 - CNPS_SHARE if queue.classes == 1 else HTB_LEAST_SHARE
    for prio, (handle, limit) in enumerate(queue.fifos.items()):
        share = CNPS_SHARE if handle == HTB_CNPS else data_share
        own = {"rate": round(share * rate), "ceil": rate, "prio": prio}
        netlink.tc("add-class", "htb", ifindex, handle, parent=HTB_LINK, **own, **burst)
        netlink.tc("add", "bfifo", ifindex, parent=handle, limit=limit)
    cnps = {"protocol": ETH_P_ALL, "prio": 1, "target": HTB_CNPS, "keys": CNP_KEYS}
    netlink.tc("add-filter", "u32", ifindex, parent=HTB_ROOT, **cnps)


def _address(host: str, layout: Layout) -> None:
    """Give a host its address and its neighbors' hardware addresses, so that no ARP shares links with experiments."""
    with IPRoute() as netlink, explain_refusal(f"the address of host {host}"):
        own, ifindex = layout.hosts[host], layout.ifindexes[host]
        netlink.link("set", index=ifindex, state="up")
        netlink.addr("add", index=ifindex, address=own.address, prefixlen=own.prefix_length)
        others = [other for other in layout.hosts.values() if other is not own]
        static_neighbors.add_neighbors([Neighbor(ifindex, layout.macs[other.name], other.address) for other in others])


def _steer_to_one_cpu(pid: int, interface: str) -> None:
    """Let one CPU receive all of a flow, so that its packets stay in order.

    A veth hands packets to the sending CPU, and a flow sends from several. TCP takes packets out of order for lost, and
    sends them again.
    """
    cpus = (1 << (os.cpu_count() or 1)) - 1
    words = [f"{cpus >> shift & 0xFFFFFFFF:x}" for shift in range(0, cpus.bit_length(), 32)]
    with suppress(FileNotFoundError):  # a kernel for one CPU has nothing to choose
        Path(f"/proc/{pid}/root/sys/class/net/{interface}/queues/rx-0/rps_cpus").write_text(",".join(reversed(words)))


@contextmanager
def _namespace(pid: int) -> Iterator[int]:
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def explain_refusal(what: str) -> Iterator[None]:
    """Turn a netlink error within the context into a LabError: the kernel refused `what`."""
    try:
        yield
    except NetlinkError as error:
        missing = error.code in {errno.ENOENT, errno.EOPNOTSUPP}
        hint = (
            "the lab needs the kernel's veth, bridge, sch_htb, cls_bpf, cls_u32 and act_mirred; `modprobe` them"
            if missing
            else None
        )
        raise LabError(f"the kernel refused {what}: {os.strerror(error.code)}", hint) from error
