# SPDX-License-Identifier: Apache-2.0
"""Check of firewalls between a rack's servers: a TCP connection to each port that trials use, closed at once.

Each server listens at the ports that no other program has, for as long as the check takes, and the server before it
connects to them. A port that another program has is left alone, because a trial may be using it.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.runner.trial import cross_traffic, jobs
from roundabout.testbeds.rack import rdma_class_check
from roundabout.testbeds.rack.examination import (
    ADDRESS,
    HOST_PROGRAMS,
    PATIENCE_S,
    PYTHON,
    SSH,
    Finding,
    run_over_ssh,
    ssh_command,
)
from roundabout.testbeds.rack.inventory import HostNic, Inventory
from roundabout.testbeds.rack.ssh_programs import PROGRAMS

PORTS = (cross_traffic.FIRST_PORT, jobs.FIRST_PORT, rdma_class_check.FIRST_PORT)  # trials use further ones after each
PROBE = ["python3", "-IS", "-c", (HOST_PROGRAMS / "port_probe.py").read_text()]


def check_ports(inventory: Inventory, findings: Mapping[str, list[Finding]]) -> dict[str, list[Finding]]:
    """Return the finding on the ports of each NIC that another server of its rail tried to reach, by the NIC's name.

    Servers that do not answer, or lack their address or Python according to `findings`, are left out, and so are those
    without a free port.
    """
    able = [name for name, found in findings.items() if _is_able(found)]
    rails: dict[int, list[str]] = {}
    for name in able:
        rails.setdefault(inventory.nics[name].rail, []).append(name)
    return {name: found for names in rails.values() for name, found in _check_rail(inventory, names).items()}


def _check_rail(inventory: Inventory, names: list[str]) -> dict[str, list[Finding]]:
    nics = [inventory.nics[name] for name in names]
    if len(nics) < 2:
        return {}
    with _listening(inventory, nics) as free, PROGRAMS.threads(len(nics)) as pool:
        sources = [nics[-1], *nics[:-1]]
        tests = [(name, test) for name, *test in zip(names, sources, nics, free, strict=True) if test[-1]]
        tried = pool.map(lambda each: _connect(inventory, *each[1]), tests)
        return {name: [finding] for (name, _), finding in zip(tests, tried, strict=True)}


def _is_able(found: list[Finding]) -> bool:
    return {SSH, ADDRESS, PYTHON} <= {each.name for each in found if each.good}


@contextmanager
def _listening(inventory: Inventory, nics: list[HostNic]) -> Iterator[list[list[int]]]:
    """Let servers listen at NICs, and yield the ports at which each of them does."""
    # If this is interrupted, listeners end first, for which the threads wait.
    with ThreadPoolExecutor(len(nics)) as pool, ExitStack() as stack:
        listeners = [stack.enter_context(_listener(inventory, nic)) for nic in nics]
        yield list(pool.map(_free_ports, listeners))


@contextmanager
def _listener(inventory: Inventory, own: HostNic) -> Iterator["subprocess.Popen[str]"]:
    words = [*PROBE, "listen", own.address, *map(str, PORTS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ssh_command(inventory, inventory.servers[own.host], words),
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as ssh:
        watchdog = Timer(PATIENCE_S, ssh.kill)
        watchdog.start()
        try:
            yield ssh  # leaving Popen's context closes its stdin, which ends the program
        finally:
            watchdog.cancel()
            ssh.terminate()


def _free_ports(listener: "subprocess.Popen[str]") -> list[int]:
    """Return the ports at which a server listens. Other lines, such as a login banner, are ignored."""
    assert listener.stdout
    return next((found for line in listener.stdout if isinstance(found := _parse(line), list)), [])


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _connect(inventory: Inventory, source: HostNic, to: HostNic, ports: list[int]) -> Finding:
    words = [*PROBE, "connect", source.address, to.address, *map(str, ports)]
    network = to.nic.ipv4.network
    mend = (
        f"`ufw allow from {network}`, or `firewall-cmd --zone=trusted --add-source={network}` (and --permanent), on "
        "this server, and outgoing connections on the others"
    )
    try:
        failures = _parse(
            run_over_ssh(inventory, inventory.servers[source.host], words, "", PATIENCE_S).splitlines()[-1]
        )
    except RoundaboutError as error:
        return Finding("TCP ports", False, error.message, error.hint or "")
    if failures:
        found = ", ".join(f"{port} ({reason})" for port, reason in failures.items())
        return Finding("TCP ports", False, f"no connection to {found}", mend)
    return Finding("TCP ports", True, "reached: " + " ".join(map(str, ports)), "")
