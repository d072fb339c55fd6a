# SPDX-License-Identifier: Apache-2.0
"""Labs with several paths, and transfers over TCP in them."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec.topology import Topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.network.namespaces import run_inside

SENT = 400_000


@contextmanager
def build_lab(topology: Topology, **options: Any) -> Iterator[Lab]:
    """Yield a lab that is removed at the end."""
    name = process_name(f"test-{topology.name}")
    built = Lab.create(topology, name, **options)
    try:
        yield built
    finally:
        Lab.remove(name)


def send(lab: Lab, sender: tuple[str, int], receiver: tuple[str, int], nics: tuple[int, int] = (0, 0)) -> None:
    """Send SENT bytes over TCP from one host and port to another, by these NICs."""
    pids = lab.live_pids()
    ends = [
        (lab.hosts[host].nics[nic].address, port) for (host, port), nic in zip((sender, receiver), nics, strict=True)
    ]
    with run_inside(pids[receiver[0]], lambda: socket.create_server(ends[1])) as listener:
        connect = lambda: socket.create_connection(ends[1], timeout=5, source_address=ends[0])  # noqa: E731
        with run_inside(pids[sender[0]], connect) as out, listener.accept()[0] as into:
            out.sendall(bytes(SENT))
            out.shutdown(socket.SHUT_WR)
            while into.recv(1 << 16):
                pass


def carried(lab: Lab) -> Counter[tuple[str, str]]:
    """Return the bytes that switch ports have sent, by link and receiver."""
    counted = lab.counters()
    return Counter({(port.link, port.towards): counted[port.ifindex].bytes for port in lab.ports})
