# SPDX-License-Identifier: Apache-2.0
"""Routers in place of a lab's switches: Linux forwards, takes from the time to live, and answers where it ends."""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations

from roundabout.spec import TrialSpec
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.forwarding.switch_routes import list_entries
from roundabout.testbeds.lab.network.layout import NETWORK, LinkEnd

FIVE_TUPLE = 0x37
"""Fields that a router hashes. By them Linux looks at packets alone; else it may take the sender's own hash of a flow,
which a veth hands over with the packet, and a cable does not."""

FLOWS_FIRST, HOSTS_NEXT = 100, 200  # priorities of rules
FLOWS_TRIED = 16  # flows between two hosts whose planned paths together are all paths, but for one case in 2**15
BEHIND_MARKING = 2  # priority of the lab's filter that forwards
ROUTER = """
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=3 net.ipv4.fib_multipath_hash_fields={fields}
for each in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $each; done
for each in {ports}; do tc filter del dev $each ingress prio {filter}; done
ip link set lo up
ip -batch - << END
{lines}
END
"""
HOST = """
for each in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $each; done
ip -batch - << END
{lines}
END
"""


RULES = """
ip rule flush
ip -batch - << END
rule add priority 32766 lookup main
{lines}
END
"""


def make_routers(lab: Lab) -> dict[str, str]:
    """Let the lab's switches route. Return the switch of each address from which they answer."""
    addresses = {name: str(NETWORK[60_000 + number]) for number, name in enumerate(lab.topology.switches)}
    neighbors = list(_neighbors(lab))
    for switch, address in addresses.items():
        lines = [f"address add {address}/32 dev lo", *(line for node, line in neighbors if node == switch)]
        lines += (f"route add {address}/32 dev {ways[0]}" for address, ways in _ways_to_hosts(lab, switch).items())
        lines += (f"route add default dev {name} table {ifindex}" for name, ifindex in _ports(lab, switch))
        ports = " ".join(name for name, _ in _ports(lab, switch))
        run_shell(
            lab, switch, ROUTER.format(fields=FIVE_TUPLE, ports=ports, filter=BEHIND_MARKING, lines="\n".join(lines))
        )
    for host in lab.hosts:
        lines = [line for node, line in neighbors if node == host]
        run_shell(lab, host, HOST.format(lines="\n".join(lines)))
    return {address: switch for switch, address in addresses.items()}


def set_routes(lab: Lab, trial: TrialSpec) -> None:
    """Give the routers the plan's routes of the trial's flows, as rules by address and port."""
    lines: dict[str, list[str]] = defaultdict(list)
    ports = {port.ifindex: port for port in lab.ports}
    for entry in list_entries(lab.layout, trial):
        port = ports[entry.entered_by]
        of_flow = f"ipproto tcp sport {entry.sender_port} dport {entry.receiver_port}" if entry.sender_port else ""
        priority = FLOWS_FIRST if of_flow else HOSTS_NEXT
        packets = f"iif {port.interface} from {entry.sender} to {entry.receiver} {of_flow}"
        lines[port.switch] += [f"rule add priority {priority} {packets} lookup {entry.left_by}"]
    for switch, own in lines.items():
        run_shell(lab, switch, RULES.format(lines="\n".join(own)))


def let_kernel_choose(lab: Lab) -> None:
    """Let Linux choose among equally short paths by its own hash of the five-tuple, as vendors' switches do."""
    for switch in lab.topology.switches:
        every = {host: [f"nexthop dev {way}" for way in ways] for host, ways in _ways_to_hosts(lab, switch).items()}
        lines = [f"route replace {address}/32 {' '.join(ways)}" for address, ways in every.items()]
        run_shell(lab, switch, RULES.format(lines="\n".join(lines)))


def _ports(lab: Lab, switch: str) -> list[tuple[str, int]]:
    return [(port.interface, port.ifindex) for port in lab.ports if port.switch == switch]


def _port_of(lab: Lab, switch: str, link: str) -> str:
    return next(port.interface for port in lab.ports if (port.switch, port.link) == (switch, link))


def _ways_to_hosts(lab: Lab, switch: str) -> dict[str, list[str]]:
    """Return the ports of a switch on shortest paths to each NIC, by address. It answers by the first of them."""
    found: dict[str, list[str]] = defaultdict(list)
    nics = [nic for own in lab.layout.nics.values() for nic in own]
    pairs = [(one, other) for one, other in permutations(nics, 2) if one.node != other.node]
    for sender, receiver in pairs:
        for flow in range(FLOWS_TRIED):
            path = lab.topology.path(sender.node, receiver.node, flow, (sender.number, receiver.number))
            ways = [_port_of(lab, switch, hop.link.name) for hop in path if hop.sender == switch]
            found[receiver.address] += [way for way in ways if way not in found[receiver.address]]
    return {address: ways for address, ways in found.items() if ways}


def _neighbors(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yield a node and the hardware address behind each of its cables, for each address that it may send there."""
    everyone = [nic.address for own in lab.layout.nics.values() for nic in own]
    for cable in lab.layout.cables:
        for near, far in permutations(cable.ends):
            own = [nic.address for nic in lab.layout.nics.get(near.node, ())]
            yield from _entries(near, far, (address for address in everyone if address not in own))


def _entries(near: LinkEnd, far: LinkEnd, addresses: Iterable[str]) -> Iterator[tuple[str, str]]:
    for address in addresses:
        yield near.node, f"neighbor replace {address} lladdr {far.mac} dev {near.interface} nud permanent"


def run_shell(lab: Lab, node: str, script: str) -> None:
    """Run a shell script in the network namespace of a node."""
    subprocess.run(["nsenter", f"--net=/proc/{lab.live_pids()[node]}/ns/net", "sh", "-ec", script], check=True)


def run_on_hosts(lab: Lab, hosts: Iterable[str], words: list[str], stdin: Mapping[str, str]) -> dict[str, str]:
    """Run a program in the network namespace of each host at once. Return what each has printed."""
    pids, pipe = lab.live_pids(), subprocess.PIPE
    commands = {host: ["nsenter", f"--net=/proc/{pids[host]}/ns/net", *words] for host in hosts}
    running = {
        host: subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for host, command in commands.items()
    }
    found = {host: program.communicate(stdin[host], timeout=60)[0] for host, program in running.items()}
    assert all(program.returncode == 0 for program in running.values())
    return found
