# SPDX-License-Identifier: Apache-2.0
"""How the runner gets a rack, and gives it up: leases, programs, transports and settings on its hosts."""

import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from roundabout.provision import deploy
from roundabout.runner.artefacts import ROOT
from roundabout.runner.journal import Entry
from roundabout.runner.lease import BusyError
from roundabout.runner.links import Channel, Link, LostHostError, Program, SshLink, check_call
from roundabout.runner.settings import PYTHON, program
from roundabout.spec.topology import Topology
from roundabout.testbeds import Host, Testbed
from roundabout.testbeds.rack import leases
from roundabout.testbeds.rack.inventory import Inventory, check_topology, read_inventory
from roundabout.testbeds.rack.rack import Rack, RackError, connect_machine, host_of

REBOOT_S, RETRY_S = 600, 5
LEASES = "/run/roundabout/rack-leases"


class AsRoot:
    """A link whose programs run as root, through sudo. It is a Link."""

    def __init__(self, link: Link) -> None:
        self.host, self._link = link.host, link

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program there. Raises LostHostError."""
        return self._link.start(["sudo", "-n", *argv])

    def close(self) -> None:
        """Drop the connection."""
        self._link.close()


class Lease:
    """A rack's hosts, switches and links, held until `end`, or until this process dies."""

    def __init__(self, link: Link, owner: str, names: Sequence[str]) -> None:
        """Take the lease. Raises BusyError, which names the holder, at once."""
        self._link, self._ended = link, threading.Event()
        argv = [PYTHON, "-IS", "-c", leases.HOLDER, LEASES, owner, str(leases.SILENCE_S), *names]
        answered = threading.Event()
        self._program = Program("lease", link, argv, lambda _program, _line: answered.set())
        answered.wait(leases.SILENCE_S)
        said = self._program.lines[0] if self._program.lines else self._program.why_ended()
        if said != "held":
            self.end()
            raise BusyError(f"the rack is leased: {said.removeprefix('busy ')}", "wait until that ends, or stop it")
        threading.Thread(target=self._beat, name="lease", daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.wait(leases.HEARTBEAT_S):
            try:
                self._program.send("here")
            except LostHostError:
                return  # the next trial on that host says so

    def end(self) -> None:
        """Give it back."""
        self._ended.set()
        self._program.close_stdin()
        self._program.finish()
        self._link.close()


class RackFacility:
    """The rack of one inventory. It is a Facility."""

    sampler = ROOT / "build/bin/sampler"

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
            link = self._as_root(SshLink(host, connect_machine(self._inventory, host)))
            self._lease = Lease(link, owner, names)

    def provision(self, testbed: Testbed) -> None:
        """Bring the programs on its hosts up to date."""
        deploy(self._inventory, testbed.hosts)

    def load_transport(self, name: str, owner: str) -> None:
        """Load a transport of ours on every host, counted by use; the kernels' own need nothing."""
        for host in self._hosts():
            self._transport(host, ["load", name, "--owner", owner, "--objects", str(host.prefix / "bpf")])

    def connect(self, testbed: Testbed, host: str) -> Link:
        """Connect to one of its hosts."""
        return self._as_root(SshLink(host, testbed.connect(host)))

    def undo(self, entry: Entry) -> None:
        """Undo what a journal's entry says. A lost host keeps its journal of settings, which `rollback` replays."""
        kind = entry["kind"]
        if kind == "folder":
            shutil.rmtree(entry["path"], ignore_errors=True)
        elif kind == "testbed" and self._lease:
            self._lease.end()
            self._lease = None
        elif kind in ("transport", "settings"):
            for host in self._hosts():
                with suppress(LostHostError):
                    self._undo_on(host, entry)

    def _undo_on(self, host: Host, entry: Entry) -> None:
        if entry["kind"] == "transport":
            self._transport(host, ["unload", entry["name"], "--owner", entry["owner"]])
        else:
            state = Path(self._inventory.common.roundabout_state)
            self._on(host, [*program(host, state), "restore", "--owner", entry["owner"]])

    def _as_root(self, link: Link) -> Link:
        return link if self._inventory.common.ansible_user == "root" else AsRoot(link)

    def _hosts(self) -> list[Host]:
        """Those of the testbed, or after a crash those of the whole rack."""
        if self._rack:
            return list(self._rack.hosts.values())
        return [host_of(self._inventory, name) for name in self._inventory.servers]

    def _transport(self, host: Host, words: Sequence[str]) -> None:
        if list((ROOT / "build/bpf").glob(f"{words[1]}.*bpf.o")):
            self._on(host, [str(host.prefix / "bin" / "transport"), *words])

    def _on(self, host: Host, argv: Sequence[str]) -> None:
        link = self._as_root(SshLink(host.name, connect_machine(self._inventory, host.ssh_alias)))
        with closing(link):
            check_call(link, argv)
