# SPDX-License-Identifier: Apache-2.0
"""What a rack must release: its lease, and every host as it was found. Hosts are stand-ins on this machine."""

import json
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from roundabout import testbeds
from roundabout.cli.runs import clean
from roundabout.core.errors import RoundaboutError
from roundabout.runner import transports
from roundabout.runner.hosts.connections import LocalConnection, LostHostError
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.machine import undo_journal
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.spec import Transport, load_topology
from roundabout.testbeds.rack import provider as rack_provider, rack_lease
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import RackError
from roundabout.testbeds.rack.rack_lease import Lease

pytestmark = pytest.mark.lab

HOSTS = ["s0", "s1", "s2", "s3"]
PENDING = {"kind": "settings", "testbed": "run1", "owner": "run1", "hosts": HOSTS, "where": {}}


class Hosts:
    """Those of a rack: some are lost, some refuse, the others note what is undone there."""

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.refusing: set[str] = set()
        self.undone: list[str] = []

    def connect(self, host: str, _connection: object) -> LocalConnection:
        if host in self.lost:
            raise LostHostError(host, "cannot connect: timed out")
        return LocalConnection(host)

    def call(self, connection: LocalConnection, _argv: object, _stdin: str) -> None:
        if connection.host in self.refusing:
            raise RoundaboutError(f"{connection.host}: could not restore sysctl net.ipv4.tcp_ecn")
        self.undone.append(connection.host)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hosts:
    hosts = Hosts()
    monkeypatch.setattr(rack_lease, "LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(rack_provider, "RootConnection", lambda connection: connection)
    monkeypatch.setattr(rack_provider, "connect_machine", lambda *_: None)
    monkeypatch.setattr(rack_provider, "SshConnection", hosts.connect)
    monkeypatch.setattr(rack_provider, "check_call", hosts.call)
    return hosts


@pytest.fixture
def provider(inventory_file: Path) -> RackProvider:
    return RackProvider(inventory_file)


def test_other_hosts_are_restored_if_one_refuses_or_is_lost(hosts: Hosts, provider: RackProvider) -> None:
    hosts.refusing, hosts.lost = {"s0"}, {"s1"}
    with pytest.raises(RoundaboutError, match="s0: could not restore.*; lost host s1: cannot connect") as raised:
        provider.undo(PENDING)
    assert sorted(hosts.undone) == ["s2", "s3"]
    assert not isinstance(raised.value, undo_journal.LostHostsError)  # which would not end the run


@pytest.mark.parametrize(
    "entry", [PENDING, PENDING | {"kind": "transport", "name": "dcqcn"}], ids=lambda entry: entry["kind"]
)
def test_hosts_that_are_frozen_are_waited_for_together(
    hosts: Hosts, provider: RackProvider, monkeypatch: pytest.MonkeyPatch, entry: dict[str, object]
) -> None:
    together = Barrier(len(HOSTS))

    def frozen(connection: LocalConnection, *_: object) -> None:
        together.wait(20)
        raise LostHostError(connection.host, "sh took longer than 60 s")

    monkeypatch.setattr(rack_provider, "check_call", frozen)
    with pytest.raises(
        undo_journal.LostHostsError, match="lost host s0: .*; lost host s1: .*; lost host s2: .*; lost host s3"
    ):
        provider.undo(entry)


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "lib" / "roundabout" / "runs"


def pending_entries(journals: Path) -> list[object]:
    """Return the entries of all journals."""
    return [entry for path in journals.glob("*.json") for entry in json.loads(path.read_text())["pending"]]


def test_a_dead_runs_entry_stays_until_its_lost_host_is_back(
    hosts: Hosts, provider: RackProvider, tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "STATE", tmp_path / "roundabout")  # empty, as after a reboot
    monkeypatch.setattr(clean, "JOURNALS", journals)
    monkeypatch.setattr(testbeds, "find_provider", lambda _where: provider)
    journals.mkdir(parents=True)
    folder = {"kind": "folder", "path": str(tmp_path / "none")}
    (journals / "run1.json").write_text(json.dumps({"run": "runs/x/run1", "pending": [folder, PENDING]}))
    hosts.lost = {"s2"}
    with pytest.raises(RoundaboutError, match="run run1: cannot undo the settings of run1 .*: lost host s2") as raised:
        clean.command()
    assert "roundabout clean" in str(raised.value.hint)
    assert f"roundabout rollback {tmp_path / 'inventory'} --owner run1" in str(raised.value.hint)
    assert pending_entries(journals) == [PENDING]
    hosts.lost = set()
    clean.command()
    assert not journals.parent.exists()


def test_a_dead_runs_entries_stay_while_its_servers_are_leased(
    hosts: Hosts, provider: RackProvider, inventory_file: Path
) -> None:
    (name,) = rack_lease.lease_names(read_inventory(inventory_file), ["s2"], [], [])
    somebody = Lease(LocalConnection(), "somebody", [name])
    with pytest.raises(RoundaboutError, match='cannot undo the settings of run1 .*the rack is leased: .*"somebody"'):
        provider.undo(PENDING)
    assert hosts.undone == []
    somebody.end()
    provider.undo(PENDING)
    assert sorted(hosts.undone) == HOSTS


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_live_run_goes_on_without_a_lost_host_and_catches_up_at_its_end(
    hosts: Hosts, provider: RackProvider, tmp_path: Path, journals: Path, comes_back: bool
) -> None:
    went_on = []
    expectation = nullcontext() if comes_back else pytest.raises(undo_journal.LostHostsError, match="lost host s2")
    with expectation, undo_journal.open_journal("run1", tmp_path / "run", journals) as notes:
        with notes.register_undo(PENDING, provider.undo):
            hosts.lost = {"s2"}
        went_on.append("to the next trial")
        if comes_back:
            hosts.lost = set()
    assert went_on
    assert ("s2" in hosts.undone) is comes_back
    assert pending_entries(journals) == ([] if comes_back else [PENDING])


def test_the_error_that_ended_a_run_comes_before_failed_undos(
    hosts: Hosts, provider: RackProvider, tmp_path: Path, journals: Path
) -> None:
    hosts.lost = {"s2"}
    with (
        pytest.raises(RoundaboutError, match="^a disk is full; cannot undo the settings of run1"),
        undo_journal.open_journal("run1", tmp_path / "run", journals) as notes,
        notes.register_undo(PENDING, provider.undo),
    ):
        raise RoundaboutError("a disk is full")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(rack_lease, "LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(rack_lease, "HEARTBEAT_S", 0.1)
    return tmp_path


def test_a_lease_is_held_as_long_as_its_holder_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rack_lease, "SILENCE_S", 1)
    lease = Lease(LocalConnection(), "me", ["host s0"])
    with pytest.raises(BusyError, match='the rack is leased: host s0 {"owner": "me"'):
        Lease(LocalConnection(), "you", ["host s0"])
    time.sleep(1.5)
    lease.check()
    lease.holder.close_stdin()
    lease.holder.finish()
    with pytest.raises(RackError, match="the lease on the rack was lost: its holder on controller"):
        lease.check()
    lease.end()


def test_a_holder_that_is_silent_has_lost_the_lease(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rack_lease, "HOLDER", 'import sys; print("held", flush=True); sys.stdin.read()')
    monkeypatch.setattr(rack_lease, "SILENCE_S", 1)
    lease = Lease(LocalConnection(), "me", ["host s0"])
    lease.check()
    time.sleep(1.2)
    with pytest.raises(RackError, match="silent for 1 s"):
        lease.check()
    lease.end()


@pytest.mark.parametrize(("holder", "found"), [
    ('import sys; sys.exit("Read-only file system")', "found: Read-only file system"),
    ('print("Welcome")', "found: Welcome; exit status 0"),
    ('import sys; sys.stdin.read()', "found: no answer within 1 s"),
])  # fmt: skip
def test_a_failed_lease_program_is_not_reported_as_a_lease(
    folder: Path, monkeypatch: pytest.MonkeyPatch, holder: str, found: str
) -> None:
    monkeypatch.setattr(rack_lease, "HOLDER", holder)
    monkeypatch.setattr(rack_lease, "SILENCE_S", 1)
    with pytest.raises(RackError, match=f"cannot lease the rack on controller: {found}"):
        Lease(LocalConnection(), "me", ["host s0"])


def test_a_banner_before_the_holders_answer_is_no_refusal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rack_lease, "HOLDER", f'print("Welcome")\n{rack_lease.HOLDER}')
    Lease(LocalConnection(), "me", ["host s0"]).end()


def test_a_plugins_transport_is_copied_to_each_host_and_loaded(
    hosts: Hosts, provider: RackProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.bpf.c").write_text('COUNTER(__u64, acks, "segments", "received");')
    built = tmp_path / "outside/mine"
    built.mkdir(parents=True)
    (built / "mine.bpf.o").write_bytes(bytes(range(256)))
    monkeypatch.setattr(transports, "OUTSIDE", tmp_path / "outside")
    loads = []

    def call(_connection: object, argv: list[str], stdin: str) -> None:
        if argv[0] == "sh":
            subprocess.run(argv, input=stdin, text=True, check=True)
        else:
            loads.append(argv)

    monkeypatch.setattr(rack_provider, "check_call", call)
    places = {name: tmp_path / name for name in HOSTS}
    site = {name: Host(name, name, "10.0.0.1", 24, "eth0", prefix) for name, prefix in places.items()}
    monkeypatch.setattr(rack_provider.Rack, "reach", lambda *_: SimpleNamespace(hosts=site))
    provider.create_hosts(load_topology("dumbbell-2x2"), "run1")

    provider.load_transport(Transport(name="mine", file=str(tmp_path / "mine.bpf.c")), "run1")
    provider.load_transport(Transport(name="dcqcn"), "run1")
    provider.load_transport(Transport(name="cubic"), "run1")

    load = "{0}/bin/transport load {1} --owner run1 --objects {0}/bpf{2}"
    assert [" ".join(argv) for argv in loads] == [
        load.format(places[host], name, folder)
        for name, folder in (("mine", "/outside"), ("dcqcn", ""))
        for host in HOSTS
    ]
    for place in places.values():
        assert (place / "bpf/outside/mine.bpf.o").read_bytes() == bytes(range(256))
