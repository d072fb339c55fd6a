# SPDX-License-Identifier: Apache-2.0
"""The runner's parts by themselves: leases, journals, records, programs."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from threading import Timer
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import Program, call, check_call
from roundabout.runner.machine import machine_lease, undo_journal
from roundabout.runner.machine.process_leftovers import find_leftovers, process_name
from roundabout.runner.machine.state import STATE, user_folder
from roundabout.runner.tables.rows import RecordError, Samples, parse_event
from roundabout.testbeds.lab import provider
from roundabout.testbeds.lab.network import namespaces
from roundabout.testbeds.lab.provider import LabProvider
from roundabout.testbeds.rack.provider import RackProvider

pytestmark = pytest.mark.unit


def test_a_lease_is_given_back_and_leaves_no_file(tmp_path):
    state = tmp_path / "roundabout"
    with machine_lease.hold("machine", "me", state):
        with (
            pytest.raises(machine_lease.BusyError, match=r"the machine is leased to me \(pid \d+, since"),
            machine_lease.hold("machine", "you", state),
        ):
            pass
        assert machine_lease.holder("machine", state) == "me"
    assert not state.exists()
    with machine_lease.hold("machine", "you", state):
        pass


def test_a_link_in_place_of_the_state_is_not_followed(tmp_path):
    """Any user can make a link in /tmp, for example to a folder of the user whose state it is to be."""
    own, state = tmp_path / "own", tmp_path / "roundabout"
    own.mkdir(mode=0o700)
    state.symlink_to(own)
    with pytest.raises(RoundaboutError, match="cannot write"), machine_lease.hold("machine", "me", state):
        pass
    assert (own.stat().st_mode & 0o777, list(own.iterdir())) == (0o700, [])


def test_a_lease_of_the_dead_is_no_obstacle(tmp_path):
    state = tmp_path / "roundabout"
    (state / "leases").mkdir(parents=True)
    (state / "leases" / "machine").write_text('{"owner": "dead", "pid": 1, "started_utc": "long ago"}')
    with machine_lease.hold("machine", "me", state):
        pass
    assert not state.exists()


def test_who_waits_for_a_lease_sees_each_holder_and_then_has_it(tmp_path):
    state, lines = tmp_path / "roundabout", []

    def release(line):
        """End the first holder's lease once it is reported, and the second's."""
        lines.append(line)
        held.close()
        if len(lines) == 1:
            held.enter_context(machine_lease.hold("machine", "second", state))

    with ExitStack() as held:
        held.enter_context(machine_lease.hold("machine", "first", state))
        with machine_lease.hold("machine", "third", state, wait_s=600, report=release):
            assert machine_lease.holder("machine", state) == "third"
    first, second = lines
    assert first.startswith("waiting up to 10 min for the machine, which is leased to first (pid")
    assert second.startswith("waiting up to 10 min for the machine, which is leased to second (pid")
    assert not state.exists()


def test_the_wait_for_a_lease_ends(tmp_path):
    lines = []
    with (
        machine_lease.hold("machine", "first", tmp_path / "roundabout"),
        pytest.raises(machine_lease.BusyError, match="the machine is leased to first"),
        machine_lease.hold("machine", "second", tmp_path / "roundabout", wait_s=0.2, report=lines.append),
    ):
        pass
    assert len(lines) == 1


def test_a_holder_that_has_not_written_its_name_yet_is_not_said_to_have_ended(tmp_path, monkeypatch):
    state = tmp_path / "roundabout"
    monkeypatch.setattr(machine_lease, "DYING_S", 0.1)
    with machine_lease.hold("machine", "first", state):
        (state / "leases" / "machine").write_text("")
        with (
            pytest.raises(machine_lease.BusyError, match="leased to a new holder") as error,
            machine_lease.hold("machine", "me", state),
        ):
            pass
    assert "ended" not in error.value.message


TAKES = """
import sys
from pathlib import Path
from roundabout.runner.machine import machine_lease
with machine_lease.hold("machine", "other", Path(sys.argv[1])):
    pass
"""


def test_those_to_which_a_lease_is_lent_take_turns_and_others_wait(tmp_path):
    state = tmp_path / "roundabout"

    def take(env):
        done = subprocess.run([sys.executable, "-c", TAKES, state], capture_output=True, text=True, env=env)
        return done.stderr.splitlines()[-1:]

    outside = {name: value for name, value in os.environ.items() if name != machine_lease.LENT}
    with machine_lease.lend("machine", "tests", state):
        assert take(os.environ) == []
        (refused,) = take(outside)
        assert "the machine is leased to tests" in refused
        with machine_lease.hold("machine", "inner", state):
            assert machine_lease.holder("machine", state) == "inner"
            (refused,) = take(os.environ)
            assert "the machine is leased to inner" in refused
    assert take(outside) == []
    assert not state.exists()


def test_a_lease_that_is_lent_anew_remains_lent_by_its_first_holder(tmp_path, monkeypatch):
    monkeypatch.delenv(machine_lease.LENT, raising=False)
    with machine_lease.lend("machine", "tests", tmp_path / "outer"):
        lent = os.environ[machine_lease.LENT]
        with machine_lease.lend("machine", "tests of tests", tmp_path / "inner"):
            assert os.environ[machine_lease.LENT] != lent
        assert os.environ[machine_lease.LENT] == lent
    assert machine_lease.LENT not in os.environ


def test_leftovers_of_dead_processes_are_found_and_no_others(tmp_path):
    with subprocess.Popen(["true"]) as ended:
        pass
    state, namespaces = tmp_path / "roundabout", tmp_path / "netns"
    for kind in ("labs/{}/lab.json", "transports/dcqcn/users/{}", "allowed/cubic/{}"):
        for name in (f"test-pid{ended.pid}", process_name("test"), "run-20261128t010203z-17ab", "dumbbell-2x2"):
            path = state / kind.format(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    namespaces.mkdir()
    for name in (f"bench-a-pid{ended.pid}", process_name("bench-a"), "mine", f"pid{ended.pid}"):
        (namespaces / name).touch()
    found = [{**each, "where": None} for each in find_leftovers(state, namespaces)]
    name = {"name": f"test-pid{ended.pid}", "where": None}
    owner = {"owner": f"test-pid{ended.pid}", "where": None}
    assert found == [
        {"kind": "testbed", **name},
        {"kind": "transport", "name": "dcqcn", **owner},
        {"kind": "transport", "name": "cubic", **owner},
        {"kind": "namespace", "name": f"bench-a-pid{ended.pid}", "where": None},
    ]


def test_leftovers_are_removed_by_the_holder_of_the_machine_alone(tmp_path, monkeypatch):
    with subprocess.Popen(["true"]) as ended:
        pass
    state, removed = tmp_path / "roundabout", []
    (state / "labs" / f"test-pid{ended.pid}").mkdir(parents=True)

    def undo(entry):
        removed.append(machine_lease.holder("machine", state))
        (state / "labs" / entry["name"]).rmdir()

    monkeypatch.setattr(clean, "STATE", state)
    monkeypatch.setattr(clean, "JOURNALS", tmp_path / "runs")
    monkeypatch.setattr(clean, "LEASE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(clean, "find_leftovers", lambda state: find_leftovers(state, tmp_path / "netns"))
    monkeypatch.setattr(clean, "undo", undo)
    with (
        machine_lease.hold("machine", "me", state),
        pytest.raises(machine_lease.BusyError, match="the machine is leased to me"),
    ):
        clean.command()
    assert removed == []
    clean.command()
    assert removed == ["roundabout clean"]


def test_a_lab_made_by_hand_has_no_name_that_clean_removes(capsys):
    with subprocess.Popen(["true"]) as ended:
        pass
    assert main(["lab", "up", "--name", f"mine-pid{ended.pid}"]) == 2
    assert "expected a name that does not end in -pid and a number" in capsys.readouterr().err


def test_a_namespace_that_cannot_be_removed_is_named(monkeypatch):
    def refuse(_name):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(namespaces.netns, "remove", refuse)
    with pytest.raises(RoundaboutError, match="cannot remove the network namespace mine: .*not permitted"):
        namespaces.remove_namespace("mine")


DIES = """
import os, subprocess, sys
from pathlib import Path
from roundabout.runner.machine import machine_lease
with machine_lease.hold("machine", "tiny run1", Path(sys.argv[1])):
    subprocess.Popen(["cat"], close_fds=False)
    os.kill(os.getpid(), 9)
"""


def test_children_of_a_dead_holder_keep_its_lease(tmp_path, monkeypatch):
    state = tmp_path / "roundabout"
    with subprocess.Popen([sys.executable, "-c", DIES, state], stdin=subprocess.PIPE) as dead:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # not yet noticed by its parent
        assert machine_lease.holder("machine", state) == ""
        monkeypatch.setattr(machine_lease, "DYING_S", 0.1)
        with (
            pytest.raises(
                machine_lease.BusyError, match=r"leased to tiny run1 .*that ended, but not what it had started"
            ),
            machine_lease.hold("machine", "me", state),
        ):
            pass
        monkeypatch.setattr(machine_lease, "DYING_S", 20)
        Timer(0.1, dead.stdin.close).start()
        with machine_lease.hold("machine", "me", state):
            assert machine_lease.holder("machine", state) == "me"
    assert not state.exists()


def note(into):
    """What undoes an entry for these tests: its kind is added to `into`."""
    return lambda entry: into.append(entry["kind"])


def test_entries_are_journaled_first_and_undone_in_reverse(tmp_path):
    folder, undone = tmp_path / "roundabout" / "runs", []

    def pending():
        return [entry["kind"] for entry in json.loads((folder / "id.json").read_text())["pending"]]

    with (
        undo_journal.open_journal("id", tmp_path / "run", folder) as notes,
        notes.register_undo({"kind": "testbed"}, note(undone)),
    ):
        with notes.register_undo({"kind": "transport"}, note(undone)):
            assert pending() == ["testbed", "transport"]
        assert undone == ["transport"]
        assert pending() == ["testbed"]
    assert undone == ["transport", "testbed"]
    assert list(tmp_path.iterdir()) == []


def test_an_entry_interrupted_while_written_is_undone_at_the_end(tmp_path, monkeypatch):
    undone = []

    def interrupted(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(undo_journal, "write_entries", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        undo_journal.open_journal("id", tmp_path / "run", tmp_path / "roundabout/runs") as notes,
        notes.register_undo({"kind": "testbed"}, note(undone)),
    ):
        pytest.fail("what was not noted was made")
    assert undone == ["testbed"]
    assert list(tmp_path.iterdir()) == []


def test_an_entry_is_undone_once(tmp_path):
    undone = []
    with undo_journal.open_journal("id", tmp_path / "run", tmp_path / "roundabout/runs") as notes:
        abandoned = notes.register_undo({"kind": "testbed"}, note(undone))
        abandoned.__enter__()
    assert undone == ["testbed"]
    abandoned.__exit__(None, None, None)  # as when Python clears up what an interruption left
    assert undone == ["testbed"]
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_cannot_be_undone_stays_in_the_journal(tmp_path):
    folder, notices, undone = tmp_path / "roundabout" / "runs", [], []

    def fails(_entry):
        raise RoundaboutError("no", "mend it")

    with (
        pytest.raises(RoundaboutError, match="^no$"),
        undo_journal.open_journal("id", tmp_path / "run", folder) as notes,
        notes.register_undo({"kind": "testbed"}, fails),
    ):
        pass
    (failed,) = undo_journal.replay(folder, fails, notices.append)
    assert (failed.message, failed.hint, failed.entries) == ("run id: no", "mend it", [{"kind": "testbed"}])
    assert undo_journal.replay(folder, note(undone), notices.append) == []
    assert undone == ["testbed"]
    assert notices == ["undoing what run id left: testbed"] * 2
    assert list(tmp_path.iterdir()) == []


def test_one_failed_entry_does_not_stop_other_undos(tmp_path):
    folder, undone = tmp_path / "roundabout" / "runs", []
    folder.mkdir(parents=True)
    (folder / "id.json").write_text('{"run": "x", "pending": [{"kind": "a"}, {"kind": "b"}, {"kind": "c"}]}')
    (folder / "garbage.json").write_text('{"pending": ')
    (folder / ".id2.json.partial").write_text("{")

    def undo(entry):
        if entry["kind"] != "b":
            raise RoundaboutError(f"no {entry['kind']}")
        undone.append(entry)

    garbage, failed = undo_journal.replay(folder, undo, lambda _line: None)
    assert failed.message == "run id: no c; no a"
    assert failed.entries == [{"kind": "a"}, {"kind": "c"}]
    assert undone == [{"kind": "b"}]
    assert "garbage.json: found no journal of a run" in garbage.message
    assert "remove the file" in garbage.hint
    assert sorted(path.name for path in folder.iterdir()) == ["garbage.json", "id.json"]


def test_a_journal_of_an_earlier_version_is_replayed(tmp_path):
    folder, undone = tmp_path / "roundabout" / "runs", []
    folder.mkdir(parents=True)
    (folder / "id.json").write_text('{"run": "x", "owed": [{"kind": "a"}]}')
    assert undo_journal.replay(folder, undone.append, lambda _line: None) == []
    assert undone == [{"kind": "a"}]


def test_journals_of_earlier_versions_are_moved_and_replayed(tmp_path, monkeypatch):
    former, folder, undone = tmp_path / "rb-1000" / "runs", tmp_path / "roundabout" / "runs", []
    former.mkdir(parents=True)
    (former / "id.json").write_text('{"run": "x", "pending": [{"kind": "a"}, {"kind": "b"}]}')
    monkeypatch.setattr(undo_journal, "FORMER_JOURNALS", former)
    assert undo_journal.runs_with_journal(folder) == ["id"]
    assert str(undo_journal.run_path("id", folder)) == "x"
    assert undo_journal.run_path("other", folder) is None

    def undo(entry):
        if entry["kind"] == "a":
            raise RoundaboutError("no")
        undone.append(entry)

    (failed,) = undo_journal.replay(folder, undo, lambda _line: None)
    assert undone == [{"kind": "b"}]
    assert json.loads((folder / "id.json").read_text())["pending"] == failed.entries == [{"kind": "a"}]
    assert not former.parent.exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"XDG_STATE_HOME": "/scratch/alice"}, "/scratch/alice/roundabout"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/alice"}, "/home/alice/.local/state/roundabout"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/alice"}, "/home/alice/.local/state/roundabout"),
    ],
)
def test_an_ordinary_users_journals_survive_a_reboot(given, expected, monkeypatch):
    """XDG Base Directory Specification 0.8: a path that is empty or relative is ignored."""
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert str(user_folder()) == expected


def test_journals_of_a_user_without_a_home_are_not_in_the_working_directory(monkeypatch):
    """A container may run as a user id that no passwd has."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert user_folder() == STATE / "roundabout"


def test_a_journal_of_a_machine_with_the_same_home_is_named_and_kept(tmp_path, monkeypatch, capsys):
    journals = tmp_path / "roundabout" / "runs" / "login1"
    other = journals.with_name("login2") / "id.json"
    other.parent.mkdir(parents=True)
    other.write_text('{"run": "x", "pending": [{"kind": "a"}]}')
    monkeypatch.setattr(clean, "STATE", tmp_path / "state")
    monkeypatch.setattr(clean, "JOURNALS", journals)
    monkeypatch.setattr(clean, "undo", None)  # so that a call fails
    clean.command()
    assert f"kept {other}: once that run has ended, `roundabout clean` on login2 undoes" in capsys.readouterr().out
    assert other.exists()


def test_a_folder_that_cannot_have_journals_is_one_message(tmp_path, monkeypatch):
    journals = tmp_path / "file" / "runs"
    journals.parent.write_text("")
    monkeypatch.setattr(undo_journal, "JOURNALS", journals)
    with (
        pytest.raises(RoundaboutError, match=f"cannot write {journals}: Not a directory") as refused,
        undo_journal.open_journal("id", tmp_path / "run", journals),
    ):
        pass
    assert "set XDG_STATE_HOME" in str(refused.value.hint)
    former = tmp_path / "rb-1000" / "runs"
    former.mkdir(parents=True)
    (former / "id.json").write_text('{"run": "x", "pending": []}')
    monkeypatch.setattr(undo_journal, "FORMER_JOURNALS", former)
    with pytest.raises(RoundaboutError, match=f"cannot write {journals}: Not a directory") as refused:
        undo_journal.replay(journals, lambda _entry: None, lambda _line: None)
    assert "set XDG_STATE_HOME" in str(refused.value.hint)


@pytest.mark.parametrize("kind", [LabProvider, RackProvider])
def test_an_entry_of_a_kind_of_another_version_is_kept(kind):
    with pytest.raises(RoundaboutError, match="found a debt of the unknown kind 'teapot', expected one of: testbed"):
        kind.undo(SimpleNamespace(), {"kind": "teapot"})


def test_other_lab_hosts_are_restored_if_one_refuses(monkeypatch, tmp_path):
    hosts = {name: Host(name, name, "10.0.0.1", 24, "eth0", tmp_path) for name in ("s0", "s1", "s2")}
    lab = SimpleNamespace(hosts=hosts, settings_state=tmp_path)
    monkeypatch.setattr(provider, "Lab", SimpleNamespace(names=lambda: ["lab"], open=lambda _name: lab))
    monkeypatch.setattr(LabProvider, "connect", lambda _self, _lab, host: LocalConnection(host))
    restored = []

    def restore(connection, _argv):
        if connection.host == "s0":
            raise RoundaboutError("s0: could not restore sysctl net.ipv4.tcp_ecn")
        restored.append(connection.host)

    monkeypatch.setattr(provider, "check_call", restore)
    with pytest.raises(RoundaboutError, match="s0: could not restore"):
        LabProvider().undo({"kind": "settings", "testbed": "lab", "owner": "run1"})
    assert sorted(restored) == ["s1", "s2"]  # in parallel


def test_samples_become_columns_by_their_header():
    lines = [
        "#port,before_ns,interface,marks",
        "#cpu,before_ns,busy_ticks",
        "port,5,eth0,",
        "cpu,6,7",
        "port,8,eth1,3",
    ]
    samples = Samples(lines, "a sampler").columns
    assert samples["port"]["interface"].tolist() == ["eth0", "eth1"]
    assert samples["port"]["marks"].tolist() == [None, 3]
    assert samples["cpu"]["busy_ticks"].tolist() == [7]


@pytest.mark.parametrize("lines", [["port,5"], ["#port,at", "port,many"], ["#port,at", "port,1,2"]])
def test_an_invalid_sample_line_is_one_message(lines):
    with pytest.raises(RecordError, match="^a sampler printed"):
        _ = Samples(lines, "a sampler").columns


@given(st.text(max_size=40))
def test_text_that_is_no_event_is_one_message(line):
    with pytest.raises(RecordError, match="^job j1 printed"):
        parse_event(line, "job j1")


def test_a_program_ends_when_its_stdin_closes_and_says_how():
    lines = []
    program = Program("cat", LocalConnection(), ["cat"], lambda _program, line: lines.append(line))
    program.send("one")
    program.send("two")
    program.close_stdin()
    program.finish()
    assert program.lines == ["one", "two"]
    assert lines == ["one", "two", None]
    assert (program.status, program.lost_connection) == (0, False)


def test_a_program_that_does_not_end_is_dropped():
    program = Program("sleep", LocalConnection(), ["sleep", "60"])
    program.close_stdin()
    begin = time.monotonic()
    program.finish(timeout_s=0.1)
    assert time.monotonic() - begin < 5
    assert program.status == -9


def test_short_programs_answer_or_complain():
    assert call(LocalConnection(), ["cat"], "hello").stdout == "hello"
    with pytest.raises(RoundaboutError, match="^controller: sh -c: it broke$"):
        check_call(LocalConnection(), ["sh", "-c", "echo error: it broke >&2; exit 3"])
    with pytest.raises(RoundaboutError, match="cannot run nothing-like-this: No such file"):
        LocalConnection("here").start(["nothing-like-this"])
