# SPDX-License-Identifier: Apache-2.0
"""Leases on a rack's hosts, switches and links, which several users share.

Leases are locks on files of one machine, which every user's inventory names. Only root can open the files. Those of an
ordinary user are in the user's home, and exclude only this user's other runs. A program on that machine, the holder,
keeps the locks while it receives messages from the owner. The locks end with the owner's connection or after a time
without messages. The holder answers each message, so that the owner has the lease's state.

The owner may be stopped or disconnected while its programs on hosts continue. Therefore each host has a guard. After
each answer of the holder, the owner sends the guards the least remaining time of the lease. When this time has passed,
the guard breaks the host's connection.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.programs import Program
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.runner.session.host_settings import PYTHON
from roundabout.testbeds.rack.examination import HOST_PROGRAMS
from roundabout.testbeds.rack.inventory import Inventory
from roundabout.testbeds.rack.rack import RackError

LEASES = "/run/roundabout/rack-leases"
USERS_LEASES = ".local/state/roundabout/rack-leases"  # in an ordinary user's home, where programs start by SSH
HELD = "held"  # first word of the holder's answer, followed by the time in the owner's last message
HEARTBEAT_S = 5
SILENCE_S = 60

HOLDER = (HOST_PROGRAMS / "lease_holder.py").read_text()
GUARD = (HOST_PROGRAMS / "lease_guard.py").read_text()


def lease_names(inventory: Inventory, hosts: Iterable[str], links: Iterable[str], switches: Iterable[str]) -> list[str]:
    """Return the names of the leases for these hosts, links and switches.

    The names consist of machines and ports, because inventories of different users may name hosts differently. Each
    name occurs once, also where two hosts are two NICs of one machine.
    """
    servers = {f"host {inventory.servers[host].ansible_host}" for host in hosts}
    machines = {f"switch {inventory.machine_of(switch)}" for switch in switches}
    ports = [
        f"port {inventory.machine_of(name)} {switch.ports[link]}"
        for link in links
        for name, switch in inventory.switches.items()
        if link in switch.ports
    ]
    return [name.replace("/", "_") for name in (*sorted(servers), *sorted(machines), *ports)]


class Lease:
    """A lease on hosts, switches and links of a rack. It lasts until `end`, or until this process dies.

    `holder` is the program that holds the locks. The remaining time counts from the sending of the last answered
    message, because the holder may have received it at once.
    """

    def __init__(self, connection: Connection, owner: str, names: Sequence[str], folder: str | None = None) -> None:
        """Take the lease, by files in `folder`, or in LEASES without one.

        Raises BusyError naming the holder, at once; RackError if no lease can be taken.
        """
        self._connection, self._ended = connection, threading.Event()
        self._guards: list[Program] = []
        self._confirmed_s = _now_s()
        argv = [PYTHON, "-IS", "-c", HOLDER, folder or LEASES, owner, str(SILENCE_S), *names]
        self._answered = threading.Event()
        self.holder = Program("lease", connection, argv, self._take_answer)
        self._beating = threading.Thread(target=self._send_heartbeats, name="lease", daemon=True)
        self._beating.start()
        silence = [] if self._answered.wait(SILENCE_S) else [f"no answer within {SILENCE_S} s"]
        if HELD not in self.holder.lines:
            self.end()
            raise self._refusal(silence or [*self.holder.lines, self.holder.describe_end()])

    def check(self) -> None:
        """Raise RackError if the lease is lost or may be lost."""
        if self.holder.has_ended or self.left_s <= 0:
            silent_s = _now_s() - self._confirmed_s
            why = self.holder.describe_end() if self.holder.has_ended else f"silent for {silent_s:.0f} s"
            raise RackError(
                f"the lease on the rack was lost: its holder on {self._connection.host}: {why}",
                "others may use the rack now; finish the run later: roundabout resume",
            )

    def guard(self, connection: Connection) -> Program:
        """Start a guard on a host, which breaks `connection` before the lease can end. Return the guard's program.

        Raises LostHostError.
        """
        argv = [PYTHON, "-IS", "-c", GUARD, f"{self.left_s:.1f}"]
        self._guards.append(Program("guard", connection, argv))
        return self._guards[-1]

    @property
    def left_s(self) -> float:
        """Return the seconds for which the lease lasts at least, minus the time to stop programs. May be negative."""
        return SILENCE_S - HEARTBEAT_S - (_now_s() - self._confirmed_s)

    def _take_answer(self, _program: Program, line: str | None) -> None:
        words = line.split() if line else []
        if words[:1] == [HELD]:
            self._confirmed_s = float(words[1]) if words[1:] else self._confirmed_s
            for guard in self._guards:
                with suppress(LostHostError):  # its connection was closed
                    guard.send(f"{self.left_s:.1f}")
        if line is None or words[:1] in ([HELD], ["busy"]):
            self._answered.set()

    def _refusal(self, lines: Sequence[str]) -> RoundaboutError:
        for line in lines:
            if line.startswith("busy "):
                holder = line.removeprefix("busy ")
                return BusyError(f"the rack is leased: {holder}", "wait until that ends, or stop it")
        return RackError(f"cannot lease the rack on {self._connection.host}: found: {'; '.join(lines)}")

    def _send_heartbeats(self) -> None:
        with suppress(LostHostError):  # `check` says so
            while not self._ended.wait(HEARTBEAT_S):
                self.holder.send(f"{_now_s():.3f}")

    def end(self) -> None:
        """Release the lease and end its holder."""
        self._ended.set()
        self._beating.join(HEARTBEAT_S)
        self.holder.close_stdin()
        self.holder.finish()
        self._connection.close()


def _now_s() -> float:
    """Return the seconds of a clock that runs while this machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
