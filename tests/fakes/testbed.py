# SPDX-License-Identifier: Apache-2.0
"""A testbed without a network, root or SSH, on which the real runner runs whole experiments in about a second.

The hosts are fake: each is a folder, with scripts (host_programs/) in place of its trainer, sampler, settings and
transports. They speak the real programs' protocols with made-up figures, and go wrong where `Faults` says so.
Connections are fake: they start processes of this machine. Switches are fake: each is a sampler more.

All else is real: the runner, its plans, sessions, clocks (collectors/clock.py), tables, checks, journals and stores.
"""

import json
import os
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import DscpClasses, EchoTimes, Host, Port
from roundabout.runner.session.host_facts import HOST_SCRIPT
from roundabout.runner.trial.ssh_testbed import SshTestbedProvider

SCALE = 50
LOST = 99  # a program that ends with this stands for a connection that broke
INTERPRETER = f"#!{sys.executable} -IS\n"  # without site-packages: a trial starts dozens of these
FACTS = "printf 'kernel\\tfake\\n'"  # the real script starts 30 programs a host; tests/rack/test_host_facts.py runs it
SOURCES = Path(__file__).with_name("host_programs")
PROGRAMS = ("replay", "route_probe.py", "sampler", "settings.py", "transport")
"""The programs of a host, by the names that they have there."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong on a host, once each: the first program that reads it has the fault.

    A list of values goes to the programs that read it, one each: the trainer of a host reads it once an attempt.
    """

    # The trainer.
    never_ready: bool | None = None
    iteration_ms: float | None = None  # 4 if nothing is said
    missing_iterations: int | None = None  # at the end
    late_ms: float | None = None  # by which it wakes up; 0.1 if nothing is said
    hangs: bool | None = None  # in its second iteration
    lost: bool | None = None  # the connection breaks in its second iteration
    peer: bool | None = None  # its peer closes the connection
    retransmitted: int | None = None  # segments
    exports_s: float | None = None  # how long it exports a record at its end
    # The sampler.
    busy: float | None = None  # the share of the CPU; 0.3 if nothing is said
    steal: float | None = None  # the share of the CPU
    softnet_dropped: int | None = None  # packets
    lost_lines: int | None = None
    sampler_dies: bool | None = None
    drops: int | None = None  # packets that a switch drops; of s0 only, whose samplers stand for those of switches
    stalls: bool | None = None  # a switch sends nothing although packets wait; of s0 only
    # The settings.
    settings_fail: bool | None = None
    drift: bool | None = None  # a setting has changed when it is read back
    freezes_in_apply: bool | None = None
    freezes_in_read: bool | None = None


def program_source(name):
    """Return a program of a host, in one file: `python3 -I`, which runs settings.py, imports nothing beside it."""
    shared = (SOURCES / "fake_host.py").read_text()
    own = (SOURCES / name).with_suffix(".py").read_text().splitlines(keepends=True)
    return INTERPRETER + shared + "".join(line for line in own if not line.startswith("from fake_host import"))


class FakeSite:
    """The hosts of a topology as folders, in the place of a HostGroup."""

    kind, scale, dilation = "fake", SCALE, 1.0
    fidelity = Fidelity("emulated", "emulated: fake", "Nothing here is real.")
    dscps = DscpClasses()
    switch_addresses = None

    def __init__(self, folder, topology, name):
        self.name, self._folder = name, folder
        self.hosts = {
            host: Host(host, host, f"10.0.0.{number}", 24, "eth0", folder / "hosts" / host)
            for number, host in enumerate(topology.hosts, start=1)
        }
        self.ports = (Port("tor0", "L1", "p1", 7, "tor1", 50, 43), Port("tor1", "L1", "p2", 8, "tor0", 50, 43))
        self.settings_state = folder / "settings"

    def identity(self):
        return {"kind": self.kind, "scale": self.scale, "generation": os.environ.get("FAKE_GENERATION", "1")}

    def capabilities(self):
        return frozenset({"own clock"})

    def settings_document(self, trial, host):
        return {"sysctl": {"net.ipv4.tcp_ecn": 1}, "transport": {"dcqcn": {"T_us": 125}}}

    def prepare(self, trial):
        pass

    def read_back(self, trial):
        return []

    def echo_times(self):
        return EchoTimes()

    def ms_on_host(self, paper_ms):
        return paper_ms * self.dilation

    def bytes_on_host(self, paper_bytes):
        return paper_bytes // SCALE

    def switch_samplers(self):
        sampler = str(self._folder / "hosts" / "s0" / "bin" / "sampler")
        return [[sampler, "--ifindex", str(port.ifindex)] for port in self.ports]

    def queue_readers(self):
        return {}


class FakeConnection(LocalConnection):
    """A connection to a folder's programs, which breaks when one of them ends with status LOST."""

    def start(self, argv):
        channel = super().start([FACTS if word == HOST_SCRIPT else word for word in argv])
        result = channel.result

        def maybe_lost():
            status, said = result()
            return (None if status == LOST else status), said

        channel.result = maybe_lost
        return channel


class FakeProvider(SshTestbedProvider):
    """The provider of fake sites. It keeps what it made as files under `folder`, so that tests see what is left."""

    where: ClassVar = {"testbed": "fake"}
    sampler = None

    def __init__(self, folder):
        self.folder = Path(folder)
        self.sampler = self.folder / "hosts" / "s0" / "bin" / "sampler"
        self.raised = 0
        self.lease_lost = False

    @property
    def left(self):
        """Return what was made and not undone."""
        return sorted(str(path.relative_to(self.folder / "made")) for path in (self.folder / "made").glob("*"))

    def fault(self, host, **faults):
        """Let `host` go wrong, once. Raises TypeError for what `Faults` does not have."""
        home = self.folder / "hosts" / host / "faults"
        home.mkdir(parents=True, exist_ok=True)
        for name, value in asdict(Faults(**faults)).items():
            if value is not None:
                (home / name).write_text(json.dumps(value))

    def artifacts(self, _transports):
        return {"replay": "1"}

    def create_hosts(self, topology, name):
        self._make(f"testbed {name}")
        self.raised += 1
        return FakeSite(self.folder, topology, name)

    def load_transport(self, transport, owner):
        self._make(f"transport {transport.name}")

    def provision(self, site):
        for host in site.hosts.values():
            (host.prefix / "bin").mkdir(parents=True, exist_ok=True)
            for name in PROGRAMS:
                path = host.prefix / "bin" / name
                path.write_text(program_source(name))
                path.chmod(0o755)
            clocks = [self.folder / "clock.py", ROOT / "collectors" / "clock.py"]
            shutil.copy(next(filter(Path.exists, clocks)), host.prefix / "bin")

    def connect(self, site, host):
        return FakeConnection(host)

    def check_held(self):
        if self.lease_lost:
            raise RoundaboutError("the lease was lost")

    def undo(self, entry):
        while (self.folder / "frozen").exists():  # what is to be undone does not answer
            (self.folder / "undoing").touch()
            time.sleep(0.01)
        if entry["kind"] in ("testbed", "transport"):
            (self.folder / "made" / f"{entry['kind']} {entry['name']}").unlink(missing_ok=True)

    def _make(self, name):
        (self.folder / "made").mkdir(parents=True, exist_ok=True)
        (self.folder / "made" / name).touch()
