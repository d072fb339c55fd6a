# SPDX-License-Identifier: Apache-2.0
"""Looks at a site before any trial: pings between all hosts, small ones and such as fill a packet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from roundabout.runner.hosts.programs import check_call
from roundabout.runner.hosts.site import Host
from roundabout.runner.trial.bench import Bench

PINGS, EVERY_S, WAIT_S = 10, 0.01, 1
SMALL_BYTES, HEADERS_BYTES = 56, 28

SCRIPT = r"""
nic=$1 count=$2 every=$3 wait=$4 small=$5 headers=$6; shift 6
mtu=$(cat "/sys/class/net/$nic/mtu") || exit 1
echo "mtu $mtu"
for peer do
  for size in "$small" $((mtu - headers)); do
    echo "to $peer $size"
    LC_ALL=C ping -q -n -c "$count" -i "$every" -W "$wait" -M do -s "$size" -I "$nic" "$peer" 2> /dev/null
  done
done
true
"""
SENT = re.compile(r"(\d+) packets transmitted, (\d+) received")
ROUND_TRIP = re.compile(r"= ([\d.]+)/")


class Pinged(NamedTuple):
    """What became of pings from one host to another: small ones, and such as its MTU just lets pass in one piece.

    `rtt_ms` is the least round trip of the large ones, None where none came back.
    """

    sender: str
    receiver: str
    lost_small: int
    lost_large: int
    rtt_ms: float | None


@dataclass(frozen=True)
class Survey:
    """What was found: each host's MTU in bytes, all pings, and the DSCP that packets of jobs are to have."""

    mtu_bytes: dict[str, int]
    pinged: tuple[Pinged, ...]
    dscp: int


def survey(bench: Bench) -> Survey:
    """Look at all hosts at once. Raises LostHostError, and RoundaboutError where one has no MTU to tell."""
    said = bench.each(lambda host: _ask(bench, host))
    mtus = {host: int(text.split()[1]) for host, text in said.items()}
    pinged = tuple(each for host, text in said.items() for each in _read(bench, host, text))
    return Survey(mtus, pinged, bench.site.dscps.jobs)


def _ask(bench: Bench, host: Host) -> str:
    peers = [other.address for other in bench.site.hosts.values() if other is not host]
    numbers = map(str, (PINGS, EVERY_S, WAIT_S, SMALL_BYTES, HEADERS_BYTES))
    return check_call(bench.connections[host.name], ["sh", "-c", SCRIPT, "sh", host.interface, *numbers, *peers])


def _read(bench: Bench, sender: str, text: str) -> Iterator[Pinged]:
    names = {host.address: host.name for host in bench.site.hosts.values()}
    parts = [part.partition("\n") for part in text.split("\nto ")[1:]]
    for (which, _, small), (_, _, large) in zip(parts[::2], parts[1::2], strict=True):
        found = ROUND_TRIP.search(large)
        rtt_ms = float(found[1]) if found else None
        yield Pinged(sender, names[which.split()[0]], _lost(small), _lost(large), rtt_ms)


def _lost(text: str) -> int:
    found = SENT.search(text)
    return PINGS - int(found[2]) if found else PINGS
