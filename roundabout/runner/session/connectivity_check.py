# SPDX-License-Identifier: Apache-2.0
"""A connectivity check of hosts before any trial: pings between all of them, small ones and full packets."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.session.host_settings import PYTHON

PINGS, EVERY_S, WAIT_S = 10, 0.01, 1.0

# Runs on every host: Python 3.8, standard library, as root. Arguments: interface, own address, pings of each kind,
# seconds between two and to wait for the last, the others' addresses. Answers a line a peer.
PINGER = r"""
import json, select, socket, struct, sys, time
nic, own, count, every_s, wait_s = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
IP_MTU_DISCOVER, DO, HEADERS, SMALL, MOST = 10, 2, 28, 56, 65535
with open("/sys/class/net/%s/mtu" % nic) as file:
    mtu = int(file.read())
def echo(number, size):
    rest = struct.pack("!HH", number >> 16, number & 0xFFFF) + b"r" * size
    whole = rest + bytes(len(rest) % 2)
    total = 0x0800 + sum(struct.unpack("!%dH" % (len(whole) // 2), whole))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return struct.pack("!BBH", 8, 0, ~total & 0xFFFF) + rest
def hear(raw, peer, sent, rtts_ms, until):
    while len(rtts_ms) < len(sent) and select.select([raw], [], [], max(0, until - time.monotonic()))[0]:
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
            hear(raw, peer, sent, rtts_ms, sent[number] + every_s)
            time.sleep(max(0, sent[number] + every_s - time.monotonic()))
        hear(raw, peer, sent, rtts_ms, time.monotonic() + wait_s)
    return rtts_ms
for place, peer in enumerate(sys.argv[6:]):
    small = ping(peer, SMALL, 2 * place << 16)
    large = ping(peer, min(mtu, MOST) - HEADERS, 2 * place + 1 << 16)
    rtt_ms = min(large.values()) if large else None
    lost = {"lost_small": count - len(small), "lost_large": count - len(large)}
    print(json.dumps({"peer": peer, "mtu_bytes": mtu, "rtt_ms": rtt_ms, **lost}), flush=True)
"""


class PingResult(NamedTuple):
    """The result of pings from one host to another: small ones, and the largest that its MTU lets pass unfragmented.

    `rtt_ms` is the least round trip of the large ones, None if none returned.
    """

    sender: str
    receiver: str
    lost_small: int
    lost_large: int
    rtt_ms: float | None


@dataclass(frozen=True)
class ConnectivityReport:
    """The result of the check: each host's MTU in bytes, all pings, and the DSCP that jobs' packets must have."""

    mtu_bytes: Mapping[str, int]
    pinged: tuple[PingResult, ...]
    dscp: int


def check_connectivity(bench: HostSession) -> ConnectivityReport:
    """Let all hosts ping each other at once. Raises LostHostError, and RoundaboutError if a host cannot."""
    names = {host.address: host.name for host in bench.site.hosts.values()}

    def on_host(host: Host) -> str:
        return check_call(
            bench.connections[host.name], pinger_command(host, [each for each in names if each != host.address])
        )

    mtu_bytes: dict[str, int] = {}
    pinged: list[PingResult] = []
    for host, text in bench.on_each_host(on_host).items():
        answers = list(parse_answers(host, names, text))
        mtu_bytes[host] = answers[0][0]
        pinged += [each for _, each in answers]
    return ConnectivityReport(mtu_bytes, tuple(pinged), bench.site.dscps.jobs)


def pinger_command(host: Host, peers: list[str]) -> list[str]:
    """Return the command that pings `peers` from `host`."""
    numbers = map(str, (PINGS, EVERY_S, WAIT_S))
    return [PYTHON, "-IS", "-c", PINGER, host.interface, host.address, *numbers, *peers]


def parse_answers(host: str, names: Mapping[str, str], text: str) -> Iterator[tuple[int, PingResult]]:
    """Yield each answer of PINGER on `host`: its MTU, and its pings to each other host; `names` has them by address."""
    for line in text.splitlines():
        told = json.loads(line)
        found = PingResult(host, names[told["peer"]], told["lost_small"], told["lost_large"], told["rtt_ms"])
        yield told["mtu_bytes"], found
