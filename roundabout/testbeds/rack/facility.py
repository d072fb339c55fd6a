# SPDX-License-Identifier: Apache-2.0
"""How the runner gets a rack, and gives it up: leases, programs, transports and settings on its hosts."""

import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from roundabout.errors import RoundaboutError
from roundabout.programs import ROOT
from roundabout.runner.hosts.connections import Channel, Connection, LostHostError, SshConnection
from roundabout.runner.hosts.programs import Program, check_call
from roundabout.runner.machine.journal import Entry, LostHostsError, each
from roundabout.runner.machine.lease import BusyError
from roundabout.runner.testbed import Host, Testbed
from roundabout.runner.trial.settings import PYTHON, program
from roundabout.spec.topology import Topology
from roundabout.testbeds.playbooks import deploy
from roundabout.testbeds.rack import leases
from roundabout.testbeds.rack.inventory import Inventory, check_topology, read_inventory
from roundabout.testbeds.rack.rack import Rack, RackError, connect_machine, host_of

REBOOT_S, RETRY_S = 600, 5
LEASES = "/run/roundabout/rack-leases"


class AsRoot:
    """A link whose programs run as root, through sudo. It is a Link."""

    def __init__(self, link: Connection) -> None:
        self.host, self._link = link.host, link

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program there. Raises LostHostError."""
        return self._link.start(["sudo", "-n", *argv])

    def close(self) -> None:
        """Drop the connection."""
        self._link.close()


class Lease:
    """A rack's hosts, switches and links, held until `end`, or until this process dies."""

    def __init__(self, link: Connection, owner: str, names: Sequence[str]) -> None:
        """Take the lease. Raises BusyError, which names the holder, at once; RackError where nobody can take one."""
        self._link, self._ended = link, threading.Event()
        self._heard_s = time.monotonic()
        argv = [PYTHON, "-IS", "-c", leases.HOLDER, LEASES, owner, str(leases.SILENCE_S), *names]
        self._answered = threading.Event()
        self._program = Program("lease", link, argv, self._hear)
        self._beating = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._beating.start()
        silence = [] if self._answered.wait(leases.SILENCE_S) else [f"no answer within {leases.SILENCE_S} s"]
        if "held" not in self._program.lines:
            self.end()
            raise self._refusal(silence or [*self._program.lines, self._program.why_ended()])

    def check(self) -> None:
        """Raise RackError where it was lost, or may have been."""
        silent_s = time.monotonic() - self._heard_s
        if self._program.ended or silent_s > leases.SILENCE_S - leases.HEARTBEAT_S:
            why = self._program.why_ended() if self._program.ended else f"silent for {silent_s:.0f} s"
            raise RackError(
                f"the lease on the rack was lost: its holder on {self._link.host}: {why}",
                "others may use the rack now; finish the run later: roundabout resume",
            )

    def _hear(self, _program: Program, line: str | None) -> None:
        if line == "held":
            self._heard_s = time.monotonic()
        if line is None or line == "held" or line.startswith("busy "):
            self._answered.set()

    def _refusal(self, said: Sequence[str]) -> RoundaboutError:
        for line in said:
            if line.startswith("busy "):
                holder = line.removeprefix("busy ")
                return BusyError(f"the rack is leased: {holder}", "wait until that ends, or stop it")
        return RackError(f"cannot lease the rack on {self._link.host}: found: {'; '.join(said)}")

    def _beat(self) -> None:
        with suppress(LostHostError):  # `check` says so
            while not self._ended.wait(leases.HEARTBEAT_S):
                self._program.send("here")

    def end(self) -> None:
        """Give it back."""
        self._ended.set()
        self._beating.join(leases.HEARTBEAT_S)
        self._program.close_stdin()
        self._program.finish()
        self._link.close()


class RackFacility:
    """The rack of one inventory. It is a Facility."""

    sampler = None

    def __init__(self, path: Path) -> None:
        """Read the inventory. Raises SpecError."""
        self._path = path
        self._inventory: Inventory = read_inventory(path)
        self._rack: Rack | None = None
        self._lease: Lease | None = None

    @property
    def where(self) -> dict[str, str]:
        """What journals note, so that others can undo what was made here."""
        return {"inventory": str(self._path.resolve())}

    def raise_testbed(self, topology: Topology, name: str) -> Testbed:
        """Lease what `topology` takes of the rack, and ask its hosts what they can do."""
        inventory = self._inventory
        check_topology(inventory, topology, str(self._path))
        taken = leases.names(inventory, topology.hosts, [link.name for link in topology.links], topology.switches)
        # A host that was lost during this run gets the time of a reboot to come back.
        deadline = time.monotonic() + (REBOOT_S if self._rack else 0)
        while True:
            try:
                self._take_lease(name, taken)  # first: nobody else gets the rack while a host reboots
                self._rack = Rack.reach(inventory, topology, name)
                return self._rack
            except (RackError, LostHostError):
                if time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_S)

    def _take_lease(self, owner: str, names: Sequence[str]) -> None:
        if self._lease is None:
            host = self._inventory.lease_host
            link = self._as_root(SshConnection(host, connect_machine(self._inventory, host)))
            self._lease = Lease(link, owner, names)

    def provision(self, testbed: Testbed) -> None:
        """Bring the programs on its hosts up to date."""
        deploy(self._inventory, testbed.hosts)

    def load_transport(self, name: str, owner: str) -> None:
        """Load a transport of ours on every host, counted by use; the kernels' own need nothing."""
        assert self._rack
        for host in self._rack.hosts.values():
            self._transport(host, ["load", name, "--owner", owner, "--objects", str(host.prefix / "bpf")])

    def connect(self, testbed: Testbed, host: str) -> Connection:
        """Connect to one of its hosts."""
        return self._as_root(SshConnection(host, testbed.connect(host)))

    def check_held(self) -> None:
        """Raise RackError where the lease on the rack was lost."""
        if self._lease:
            self._lease.check()

    def undo(self, entry: Entry) -> None:
        """Undo what a journal's entry says, on every host that can be reached.

        Raises LostHostsError where others cannot be, RoundaboutError where a host refuses.
        """
        kind = entry["kind"]
        if kind == "folder":
            shutil.rmtree(entry["path"], ignore_errors=True)
        elif kind == "testbed" and self._lease:
            self._lease.end()
            self._lease = None
        elif kind in ("transport", "settings"):
            known = [host_of(self._inventory, name) for name in entry["hosts"] if name in self._inventory.servers]
            self._explain(entry, each(lambda host: self._undo_on(host, entry), known))

    def _explain(self, entry: Entry, failed: list[RoundaboutError]) -> None:
        if failed:
            kind = LostHostsError if all(isinstance(error, LostHostError) for error in failed) else RoundaboutError
            said = "; ".join(error.message for error in failed)
            raise kind(
                f"cannot undo the {entry['kind']} of {entry['owner']} everywhere: {said}",
                "once that is mended: roundabout clean (a host that left the inventory is left alone); for settings "
                f"alone, from any machine: roundabout rollback {self._path} --owner {entry['owner']}",
            )

    def _undo_on(self, host: Host, entry: Entry) -> None:
        if entry["kind"] == "transport":
            self._transport(host, ["unload", entry["name"], "--owner", entry["owner"]])
        else:
            state = Path(self._inventory.common.roundabout_state)
            self._on(host, [*program(host, state), "restore", "--owner", entry["owner"]])

    def _as_root(self, link: Connection) -> Connection:
        return link if self._inventory.common.ansible_user == "root" else AsRoot(link)

    def _transport(self, host: Host, words: Sequence[str]) -> None:
        if list((ROOT / "build/bpf").glob(f"{words[1]}.*bpf.o")):
            self._on(host, [str(host.prefix / "bin" / "transport"), *words])

    def _on(self, host: Host, argv: Sequence[str]) -> None:
        link = self._as_root(SshConnection(host.name, connect_machine(self._inventory, host.ssh_alias)))
        with closing(link):
            check_call(link, argv)
