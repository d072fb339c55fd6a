# SPDX-License-Identifier: Apache-2.0
"""How this machine gets testbeds, and gets rid of them."""

import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from types import MappingProxyType

from roundabout.errors import RoundaboutError
from roundabout.programs import ROOT
from roundabout.runner.hosts.connections import Connection, LocalConnection, LostHostError, SshConnection
from roundabout.runner.hosts.programs import call, check_call
from roundabout.runner.machine.journal import Entry, each, raise_together
from roundabout.runner.testbed import Host, Testbed
from roundabout.runner.trial.settings import program
from roundabout.spec.topology import Topology
from roundabout.testbeds.lab import Lab, LabError, allowed
from roundabout.testbeds.lab.calibration import Calibration
from roundabout.testbeds.playbooks import provision


class LabFacility:
    """Labs on this machine. It is a Facility."""

    sampler = ROOT / "build/bin/sampler"
    where: Mapping[str, str] = MappingProxyType({})

    def __init__(self, calibration: Calibration | None = None) -> None:
        """Labs are built with `calibration`, or with the one that the lab keeps."""
        self._calibration = calibration

    def raise_testbed(self, topology: Topology, name: str) -> Testbed:
        """Build the lab called `name`."""
        return Lab.up(topology, name, calibration=self._calibration)

    def provision(self, testbed: Testbed) -> None:
        """Deploy programs on its hosts."""
        provision(testbed)

    def load_transport(self, name: str, owner: str) -> None:
        """Load a transport of ours, or allow one of the kernel's: machine-wide, and counted by use."""
        self._transport("load", name, owner)

    def connect(self, testbed: Testbed, host: str) -> Connection:
        """Connect to one of its hosts."""
        return SshConnection(host, testbed.connect(host))

    def check_held(self) -> None:
        """Nothing: this machine's lease ends with this process only."""

    def undo(self, entry: Entry) -> None:
        """Undo what a journal's entry says, whether it was made wholly, in part or not at all."""
        kind = entry["kind"]
        if kind == "folder":
            shutil.rmtree(entry["path"], ignore_errors=True)
        elif kind == "testbed" and entry["name"] in Lab.names():
            Lab.down(entry["name"])
        elif kind == "transport":
            self._transport("unload", entry["name"], entry["owner"])
        elif kind == "settings" and entry["testbed"] in Lab.names():
            self._restore(entry["testbed"], entry["owner"])

    def _transport(self, action: str, name: str, owner: str) -> None:
        if not list((ROOT / "build/bpf").glob(f"{name}.*bpf.o")):
            (allowed.allow if action == "load" else allowed.disallow)(name, owner)  # the kernel's own
            return
        done = call(LocalConnection(), [str(ROOT / "build/bin/transport"), action, name, "--owner", owner])
        if done.status != 0:
            raise RoundaboutError(f"cannot {action} transport {name}: {done.stderr.removeprefix('transport: ')}")

    def _restore(self, lab: str, owner: str) -> None:
        try:
            testbed = Lab.open(lab)
        except LabError:
            return  # a host died, or all of them: the settings that matter died with them

        def restore(host: Host) -> None:
            # A host that was lost took its settings along.
            with suppress(LostHostError), closing(self.connect(testbed, host.name)) as link:
                check_call(link, [*program(host, testbed.settings_state), "restore", "--owner", owner])

        raise_together(each(restore, testbed.hosts.values()))
