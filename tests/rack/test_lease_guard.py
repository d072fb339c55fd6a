# SPDX-License-Identifier: Apache-2.0
"""A rack is idle when its lease ends, whatever became of who had it. The rack's hosts are stand-ins on this machine."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from roundabout.runner.hosts import programs
from roundabout.runner.hosts.connections import LocalChannel, LocalConnection
from roundabout.runner.hosts.programs import Program, check_call
from roundabout.runner.machine import undo_journal
from roundabout.runner.session.host_settings import PYTHON
from roundabout.spec import load_topology
from roundabout.testbeds.rack import provider as rack_provider, rack_lease
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import RackError
from roundabout.testbeds.rack.rack_lease import Lease
from tests.deadline import wait_for

pytestmark = [pytest.mark.unit, pytest.mark.quiet]

TOPOLOGY = load_topology("dumbbell-2x2")
ANSWERS_ONCE = 'import sys; print("held", flush=True); sys.stdin.read()'


class Sshd(LocalConnection):
    """A connection that a process called sshd serves: when that ends, nothing is read there any more."""

    def __init__(self, host: str, folder: Path) -> None:
        super().__init__(host)
        self._sshd = folder / "sshd"
        shutil.copy("/bin/sh", self._sshd)

    def start(self, argv: Sequence[str]) -> LocalChannel:
        return LocalChannel([str(self._sshd), "-c", '"$@"; exit $?', "sh", *argv])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rack_lease, "LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(rack_lease, "HEARTBEAT_S", 0.5)
    monkeypatch.setattr(rack_lease, "SILENCE_S", 1.5)


@pytest.fixture
def guarded(tmp_path: Path) -> Callable[[Lease], Program]:
    def guard(lease: Lease) -> Program:
        return lease.guard(Sshd("s0", tmp_path))

    return guard


def test_a_host_goes_on_while_the_leases_holder_answers(guarded: Callable[[Lease], Program]) -> None:
    lease = Lease(LocalConnection(), "me", ["host s0"])
    guard = guarded(lease)
    time.sleep(2)
    lease.check()
    assert not guard.has_ended
    guard.close_stdin()  # as when its connection ends by itself
    guard.finish()
    assert guard.status == 0
    lease.end()


def test_a_host_ends_its_connection_before_the_lease_can_end_unheard(
    guarded: Callable[[Lease], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rack_lease, "HOLDER", ANSWERS_ONCE)
    lease = Lease(LocalConnection(), "me", ["host s0"])
    guard = guarded(lease)
    begun_s = time.monotonic()
    wait_for(lambda: guard.has_ended, 10)
    assert time.monotonic() - begun_s > 0.2
    assert guard.status == -9  # it is its sshd that was killed
    lease.end()


def test_a_stopped_owner_is_as_silent_as_a_dead_one(
    guarded: Callable[[Lease], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here only its beats stop; tests/rack/lab_hosts/test_lab_as_rack.py stops the whole process."""
    lease = Lease(LocalConnection(), "me", ["host s0"])
    guard = guarded(lease)
    monkeypatch.setattr(Program, "send", lambda *_: None)
    wait_for(lambda: guard.has_ended, 10)
    assert not lease.holder.has_ended  # others get the rack after that, and not before
    wait_for(lambda: lease.holder.has_ended, 10)
    with pytest.raises(RackError, match="the lease on the rack was lost"):
        lease.check()
    lease.end()


def test_an_answer_that_comes_late_confirms_only_what_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "line = sys.stdin.readline(); time.sleep(0.6); print('held', line.strip(), flush=True)"
    monkeypatch.setattr(rack_lease, "HOLDER", f"import time; {ANSWERS_ONCE.replace('sys.stdin.read()', slow)}")
    lease = Lease(LocalConnection(), "me", ["host s0"])
    wait_for(lambda: len(lease.holder.lines) == 2, 10)
    assert lease.left_s < 0.45  # 1 s from its request, and not from its answer
    lease.end()


@pytest.mark.parametrize("left_s", [-0.1, -3.0, -1e9])
@pytest.mark.parametrize("starts_late", [True, False])
def test_a_host_ends_its_connection_at_once_if_the_lease_has_expired(
    tmp_path: Path, left_s: float, starts_late: bool
) -> None:
    first_s = left_s if starts_late else 60
    guard = Program("guard", Sshd("s0", tmp_path), [PYTHON, "-IS", "-c", rack_lease.GUARD, f"{first_s:.1f}"])
    if not starts_late:
        guard.send(f"{left_s:.1f}")
    wait_for(lambda: guard.has_ended, 10)
    assert guard.status == -9


@pytest.fixture
def provider(inventory_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RackProvider]:
    """Yield a rack, all of whose hosts are this machine, after its lease was taken."""
    monkeypatch.setattr(rack_provider, "connect_machine", lambda *_: None)
    monkeypatch.setattr(rack_provider, "SshConnection", lambda host, _: LocalConnection(host))
    monkeypatch.setattr(rack_provider.Rack, "reach", lambda *_: object())
    provider = RackProvider(inventory_file)
    provider.create_hosts(TOPOLOGY, "run1")
    yield provider
    provider.undo({"kind": "testbed", "name": "run1"})


@pytest.fixture
def silent_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the holder of a lease answer only once."""
    monkeypatch.setattr(rack_lease, "HOLDER", ANSWERS_ONCE)


def test_a_run_whose_lease_is_lost_while_a_host_reboots_does_not_wait_on(
    silent_holder: None, provider: RackProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rack_provider, "RETRY_S", 0.1)

    def reach(*_: object) -> None:
        raise RackError("host s2 does not answer")

    monkeypatch.setattr(rack_provider.Rack, "reach", reach)
    begun = time.monotonic()
    with pytest.raises(RackError, match="the lease on the rack was lost"):
        provider.create_hosts(TOPOLOGY, "run1")
    assert time.monotonic() - begun < 10


def test_a_frozen_hosts_entries_stay_and_other_hosts_are_restored(
    provider: RackProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undoing it ends by itself: nothing need be killed."""
    monkeypatch.setattr(programs, "CALL_TIMEOUT_S", 0.3)

    def call(connection: LocalConnection, argv: Sequence[str], stdin: str) -> str:
        there = ["sleep", "60"] if connection.host == "s1" else ["touch", str(tmp_path / connection.host)]
        return check_call(connection, there, stdin)

    monkeypatch.setattr(rack_provider, "check_call", call)
    hosts = ["s0", "s1", "s2"]
    entry = {"kind": "settings", "testbed": "run1", "owner": "run1", "hosts": hosts, "where": {}}
    with pytest.raises(undo_journal.LostHostsError, match="lost host s1: sleep took longer than 0.3 s"):
        provider.undo(entry)
    assert sorted(path for path in os.listdir(tmp_path) if path in hosts) == ["s0", "s2"]
