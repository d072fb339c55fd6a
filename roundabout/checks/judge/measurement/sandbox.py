# SPDX-License-Identifier: Apache-2.0
"""Two hosts on an unshaped veth pair. They are removed when this process ends, even if it is killed."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.programs import ENDS_WITH_STDIN
from roundabout.spec.transports import Transport
from roundabout.testbeds.lab.network.namespaces import run_inside

HOLDER = [
    "unshare",
    "--net",
    "sh",
    "-c",
    "echo; exec cat",
]  # process that keeps a network namespace until its stdin closes


@dataclass(frozen=True)
class NetnsHost:
    """A host: the pid of a process in its network namespace, and its address."""

    pid: int
    address: str

    def run(self, *argv: str) -> str:
        """Run a short program on the host and return its stdout. Raises RoundaboutError with its stderr if it fails."""
        done = run_inside(self.pid, lambda: subprocess.run(argv, capture_output=True, text=True))
        if done.returncode != 0:
            raise RoundaboutError(f"{' '.join(argv[:3])}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        return done.stdout

    @contextmanager
    def start(self, *argv: str) -> Iterator["subprocess.Popen[str]"]:
        """Start a program on the host. It is ended at the end of the block, and if this process is killed."""
        pipe = subprocess.PIPE
        alive, ends = os.pipe()
        words = [*ENDS_WITH_STDIN, *argv]
        with run_inside(
            self.pid, lambda: subprocess.Popen(words, stdin=alive, stdout=pipe, stderr=pipe, text=True)
        ) as program:
            os.close(alive)
            try:
                yield program
            finally:
                os.close(ends)

    def received_segments(self) -> int:
        """Return the number of TCP segments that the host has received. For a sender these are ACKs."""
        lines = run_inside(self.pid, lambda: Path("/proc/thread-self/net/snmp").read_text()).splitlines()
        names, values = (line.split() for line in lines if line.startswith("Tcp:"))
        return int(values[names.index("InSegs")])

    def set_sysctls(self, sysctls: Mapping[str, str | int]) -> None:
        """Set sysctls of the host's namespace, such as `net.ipv4.tcp_ecn`. Raises RoundaboutError if one fails."""
        for name, value in sysctls.items():
            run_inside(self.pid, partial(_write, name, str(value)))

    def use_congestion_control(self, kernel_name: str) -> None:
        """Make `kernel_name` the host's default congestion control, and enable ECN."""
        self.set_sysctls({"net.ipv4.tcp_congestion_control": kernel_name, "net.ipv4.tcp_ecn": 1})


@contextmanager
def unshaped_pair(*gso_max: str) -> Iterator[tuple[NetnsHost, NetnsHost]]:
    """Yield a sender and a receiver. `gso_max` are arguments of `ip link` that limit bursts."""
    with ExitStack() as stack:
        one, other = (NetnsHost(stack.enter_context(_namespace()), f"10.77.9.{number}") for number in (1, 2))
        _ip("link", "add", "eth0", "netns", str(one.pid), "type", "veth", "peer", "eth0", "netns", str(other.pid))
        for each in (one, other):
            each.run("ip", "addr", "add", f"{each.address}/24", "dev", "eth0")
            each.run("ip", "link", "set", "eth0", "up", *gso_max)
        yield one, other


def transport_arguments(transport: Transport, rate_mbps: float | None) -> list[str]:
    """Return the arguments of `transport set` for a line rate of `rate_mbps`. None: the highest allowed rate."""
    declared = transport.declaration.parameters if transport.declaration else ()
    values = {
        each.name: rate_mbps or each.most
        if each.chosen_by == "line_rate"
        else transport.requested.get(each.name, transport.fallback(each))
        for each in declared
        if each.chosen_by != "nic"
    }
    return [f"{name}={value}" for name, value in values.items()]


@contextmanager
def _namespace() -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen(HOLDER, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as holder:
        assert holder.stdout
        assert holder.stderr
        if holder.stdout.readline() != "\n":
            said = holder.stderr.read().strip()
            raise RoundaboutError(f"cannot make a network namespace: {said}", "run as root, with sudo for example")
        yield holder.pid


def _write(sysctl: str, value: str) -> None:
    try:
        Path("/proc/sys", *sysctl.split(".")).write_text(value)
    except OSError as error:
        raise RoundaboutError(f"{sysctl}: cannot be set to {value}: {error.strerror}") from error


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RoundaboutError(f"ip {' '.join(words[:2])}: {done.stderr.strip()}")
