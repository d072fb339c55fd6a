# SPDX-License-Identifier: Apache-2.0
"""Devices and addresses of a lab, by netlink."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from roundabout.runner.hosts.host_group import Port
from roundabout.testbeds.lab.network import static_neighbors
from roundabout.testbeds.lab.network.kernel_refusal import explain_refusal
from roundabout.testbeds.lab.network.layout import (
    BRIDGE_IFINDEX,
    NETWORK,
    TAP_INTERFACE,
    Cable,
    HostNic,
    Layout,
    LinkEnd,
    route_table,
)
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.network.port_queues import ETH_P_ALL, Queue, shape_device
from roundabout.testbeds.lab.network.static_neighbors import Neighbor

MULTICAST_OFF = {"br_mcast_snooping": 0, "br_mcast_querier": 0, "br_mcast_router": 0}
CLSACT_INGRESS, CLSACT_EGRESS = 0xFFFFFFF2, 0xFFFFFFF3
REUSE_OF_PORTS = Path("/proc/sys/net/ipv4/tcp_tw_reuse")
BEHIND_MARKING = 2  # priority of filters; `switchport` uses 1


def build(  # noqa: PLR0913 - what a lab is made of
    layout: Layout,
    queues: Mapping[Port, Queue],
    nic_queues: Mapping[HostNic, Queue],
    pids: Mapping[str, int],
    *,
    burst_bytes: int,
    mtu: int,
) -> None:
    """Create bridges, veth pairs, queues and addresses inside the namespaces of the processes `pids`.

    With several paths a switch has no bridge: its ports forward by routes (forwarding/switch_routes.py).

    Raises:
        LabError: the kernel refused; the caller must remove the namespaces.
    """
    for switch in layout.topology.switches if layout.topology.is_tree else ():
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
    for nic, queue in nic_queues.items():
        run_inside(pids[nic.node], partial(_make_nic_queue, nic, queue, burst_bytes=burst_bytes, mtu=mtu))
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
    bridge = {"master": BRIDGE_IFINDEX} if layout.topology.is_tree else {}
    with IPRoute() as netlink:
        for port, queue in queues.items():
            with explain_refusal(f"the queue of {port.switch}'s port to {port.towards}"):
                netlink.link("set", index=port.ifindex, state="up", **bridge)
                shape_device(netlink, port.ifindex, queue, burst_bytes)
    if not bridge:
        return
    with explain_refusal("static forwarding entries"):
        # Not left to learning: until a host has answered, what it gets would be flooded, and a flooded packet is a
        # shared copy, which cannot be marked.
        static_neighbors.add_neighbors(
            [
                Neighbor(port.ifindex, nic.mac)
                for port in queues
                for host in layout.hosts_behind[port.ifindex]
                for nic in layout.nics[host]
            ]
        )


def _make_nic_queue(nic: HostNic, queue: Queue, *, burst_bytes: int, mtu: int) -> None:
    with IPRoute() as netlink, explain_refusal(f"the queue of {nic.node}'s NIC {nic.interface}"):
        shape_device(netlink, nic.ifindex, queue, burst_bytes)
        if nic.number == 0:  # captures of others are refused
            _make_tap(netlink, nic.ifindex, mtu)


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


def _address(host: str, layout: Layout) -> None:
    """Give a host its addresses and its neighbors' hardware addresses, so that no ARP shares links with experiments."""
    others = [nic for other, nics in layout.nics.items() if other != host for nic in nics]
    with IPRoute() as netlink, explain_refusal(f"the addresses of host {host}"):
        for nic in layout.nics[host]:
            netlink.link("set", index=nic.ifindex, state="up")
            if nic.number == 0:
                netlink.addr("add", index=nic.ifindex, address=nic.address, prefixlen=NETWORK.prefixlen)
            else:
                _address_further_nic(netlink, nic)
            static_neighbors.add_neighbors([Neighbor(nic.ifindex, other.mac, other.address) for other in others])
    if not layout.topology.is_tree:
        REUSE_OF_PORTS.write_text("1")  # by the next trial, whose flows have the same source ports


def _address_further_nic(netlink: IPRoute, nic: HostNic) -> None:
    """Give a NIC behind a host's first an address, and let packets from that address leave by the NIC."""
    table = route_table(nic.number)
    netlink.addr("add", index=nic.ifindex, address=nic.address, prefixlen=32)  # no second route to the network
    netlink.route("add", dst=str(NETWORK), oif=nic.ifindex, table=table, scope="link", prefsrc=nic.address)
    netlink.rule("add", src=nic.address, src_len=32, table=table, priority=table)


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
