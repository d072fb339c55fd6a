# SPDX-License-Identifier: Apache-2.0
"""Connectivity check of hosts before the first trial: small and full-size pings between all pairs of hosts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.session.host_settings import PYTHON

PINGS, EVERY_S, ANSWER_TIMEOUT_S = 10, 0.01, 1.0

# Program for every host, which runs as root with Python 3.8's standard library. Arguments: interface, own address,
# number of pings of each size, seconds between two pings, seconds to wait for the last, and the peers' addresses.
# It prints one line for each peer.
PINGER = r"""
import json, select, socket, struct, sys, time
nic, own, count, every_s, wait_s = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
IP_MTU_DISCOVER, DO, HEADERS, SMALL, MAX_PACKET_BYTES = 10, 2, 28, 56, 65535
with open("/sys/class/net/%s/mtu" % nic) as file:
    mtu = int(file.read())
def echo(number, size):
    rest = struct.pack("!HH", number >> 16, number & 0xFFFF) + b"r" * size
    whole = rest + bytes(len(rest) % 2)
    total = 0x0800 + sum(struct.unpack("!%dH" % (len(whole) // 2), whole))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return struct.pack("!BBH", 8, 0, ~total & 0xFFFF) + rest
def receive(raw, peer, sent, rtts_ms, until):
    while len(rtts_ms) < len(sent):
        left_s = until - time.monotonic()
        if left_s <= 0 or not select.select([raw], [], [], left_s)[0]:
            return
        packet, (source, _) = raw.recvfrom(65535)
        at = (packet[0] & 15) * 4
        kind, number = packet[at], struct.unpack("!HH", packet[at + 4:at + 8])
        number = number[0] << 16 | number[1]
        if kind == 0 and source == peer and number in sent:
            rtts_ms[number] = (time.monotonic() - sent[number]) * 1e3
def ping(peer, size, first):
    sent, rtts_ms = {}, {}
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DO)
        raw.bind((own, 0))
        for number in range(first, first + count):
            sent[number] = time.monotonic()
            try:
                raw.sendto(echo(number, size), (peer, 0))
            except OSError:
                pass
            receive(raw, peer, sent, rtts_ms, sent[number] + every_s)
            time.sleep(max(0, sent[number] + every_s - time.monotonic()))
        receive(raw, peer, sent, rtts_ms, time.monotonic() + wait_s)
    return rtts_ms
for place, peer in enumerate(sys.argv[6:]):
    small = ping(peer, SMALL, 2 * place << 16)
    large = ping(peer, min(mtu, MAX_PACKET_BYTES) - HEADERS, 2 * place + 1 << 16)
    rtt_ms = min(large.values()) if large else None
    lost = {"lost_small": count - len(small), "lost_large": count - len(large)}
    print(json.dumps({"peer": peer, "mtu_bytes": mtu, "rtt_ms": rtt_ms, **lost}), flush=True)
"""


class PingResult(NamedTuple):
    """The numbers of lost pings from one host to another, of small ones and of the largest unfragmented ones.

    They are between the hosts' NICs of the number `nic`. `rtt_ms` is the shortest round trip of a large ping, over the
    dilation, or None if all were lost.
    """

    sender: str
    receiver: str
    lost_small: int
    lost_large: int
    rtt_ms: float | None
    nic: int = 0


@dataclass(frozen=True)
class ConnectivityReport:
    """The result of the check: the MTU of each NIC in bytes, all pings, and the DSCP of jobs' packets."""

    mtu_bytes: Mapping[tuple[str, int], int]
    pinged: tuple[PingResult, ...]
    dscp: int


def check_connectivity(session: HostSession, pings: int = PINGS) -> ConnectivityReport:
    """Let all hosts ping each other in parallel, `pings` times with each size.

    Raises LostHostError, and RoundaboutError if a host cannot ping.
    """
    nics = {
        nic.address: (host.name, number) for host in session.site.hosts.values() for number, nic in enumerate(host.nics)
    }

    def on_host(host: Host) -> str:
        commands = pinger_commands(host, session.site.hosts.values(), pings)
        return "".join(check_call(session.connections[host.name], command) for command in commands)

    mtu_bytes: dict[tuple[str, int], int] = {}
    pinged: list[PingResult] = []
    for host, text in session.on_each_host(on_host).items():
        for mtu, found in parse_answers(host, nics, text):
            mtu_bytes[host, found.nic] = mtu
            rtt_ms = None if found.rtt_ms is None else found.rtt_ms / session.site.dilation
            pinged.append(found._replace(rtt_ms=rtt_ms))
    return ConnectivityReport(mtu_bytes, tuple(pinged), session.site.dscps.jobs)


def pinger_commands(host: Host, hosts: Iterable[Host], pings: int = PINGS) -> Iterator[list[str]]:
    """Yield a command for each NIC of `host`, which pings the NICs of the same number of all other hosts."""
    numbers = [str(each) for each in (pings, EVERY_S, ANSWER_TIMEOUT_S)]
    others = [other for other in hosts if other.name != host.name]
    for place, nic in enumerate(host.nics):
        peers = [other.nics[place].address for other in others if place < len(other.nics)]
        if peers:
            yield [PYTHON, "-IS", "-c", PINGER, nic.interface, nic.address, *numbers, *peers]


def parse_answers(host: str, nics: Mapping[str, tuple[str, int]], text: str) -> Iterator[tuple[int, PingResult]]:
    """Yield the MTU of a NIC of `host`, in bytes, and the result for each peer from the output `text` of PINGER.

    `nics` maps the peers' addresses to hosts, with the NIC's number.
    """
    for line in text.splitlines():
        reported = json.loads(line)
        peer, number = nics[reported["peer"]]
        lost = reported["lost_small"], reported["lost_large"]
        yield reported["mtu_bytes"], PingResult(host, peer, *lost, reported["rtt_ms"], number)
