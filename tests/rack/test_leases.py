# SPDX-License-Identifier: Apache-2.0
"""Leases of several users of one rack, held on this machine instead of on one of the rack's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roundabout.runner.hosts.connections import LocalConnection, LostHostError
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.spec import load_topology
from roundabout.testbeds.rack import rack_lease
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import Rack, RackError
from roundabout.testbeds.rack.rack_lease import Lease

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundabout.testbeds.rack.rack_lease.LEASES", str(tmp_path / "leases"))


@contextmanager
def held(owner: str, *names: str) -> Iterator[None]:
    lease = Lease(LocalConnection(), owner, names)
    try:
        yield
    finally:
        lease.end()


def test_leases_are_named_by_machine_and_port(inventory_file: Path) -> None:
    topology = load_topology("dumbbell-2x2")
    links = [link.name for link in topology.links]
    names = rack_lease.lease_names(read_inventory(inventory_file), topology.hosts, links, topology.switches)
    assert {"host gpu0.example.org", "switch sonic1.example.org", "port sonic0.example.org Ethernet48"} <= set(names)
    assert "port sonic1.example.org Ethernet48" in names  # a link has two ends
    assert not [name for name in names if "gpu4" in name or "/" in name]


def test_two_nics_of_a_machine_are_one_lease(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    inventory_file.write_text(
        re.sub(r"gpu1\.example\.org, nic: \w+", "gpu0.example.org, nic: ens2f0np0", text, count=1)
    )
    names = rack_lease.lease_names(read_inventory(inventory_file), ["s0", "s1"], [], [])
    assert names == ["host gpu0.example.org"]
    with held("first", *names):
        pass


@pytest.mark.parametrize("common", ["host gpu0", "switch tor", "port tor Ethernet48"])
def test_a_host_a_switch_or_a_link_is_one_users_at_a_time(common: str) -> None:
    with held("first", "host gpu1", common):
        with pytest.raises(BusyError, match=f'{common} {{"owner": "first"'), held("second", "host gpu2", common):
            pass
        with held("second", "host gpu2"):  # what the refused one had taken already is free again
            pass
    with held("second", "host gpu1", common):
        pass


def test_a_rack_stays_leased_while_a_lost_host_reboots(inventory_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def reach(_inventory: object, _topology: object, name: str) -> str:
        with pytest.raises(BusyError), held("second", "host gpu0.example.org"):
            pass
        tries.append(name)
        if len(tries) == 2:
            raise RackError("host s2 does not answer")
        return name

    def connect(host: str, _connection: object) -> LocalConnection:
        tries.append(host)
        if len(tries) == 4:
            raise LostHostError(host, "cannot connect")
        return LocalConnection(host)

    monkeypatch.setattr(Rack, "reach", reach)
    monkeypatch.setattr("roundabout.testbeds.rack.provider.connect_machine", lambda *_: None)
    monkeypatch.setattr("roundabout.testbeds.rack.provider.SshConnection", connect)
    monkeypatch.setattr("roundabout.testbeds.rack.provider.RETRY_S", 0)
    provider = RackProvider(inventory_file)
    first, topology = {"kind": "testbed", "name": "first"}, load_topology("dumbbell-2x2")
    with pytest.raises(RackError):  # the first time, no caller waits
        provider.create_hosts(topology, "first")
    provider.create_hosts(topology, "first")
    provider.undo(first)
    tries[:] = ["", "", ""]
    provider.create_hosts(topology, "first")  # it waits for the machine that keeps leases, too
    assert tries[3:] == ["gpu0.example.org", "gpu0.example.org", "first"]
    provider.undo(first)
