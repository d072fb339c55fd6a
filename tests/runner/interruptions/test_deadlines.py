# SPDX-License-Identifier: Apache-2.0
"""Every remote call ends: a host that freezes anywhere is lost, and what was going on there is over."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import fabric
import paramiko
import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts import connections, deadlines, playbooks, programs
from roundabout.runner.hosts.connections import LocalConnection, LostHostError, SshConnection, Tunnel
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import Program, call, check_call
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.trial import captures
from roundabout.spec.capture import Capture
from tests.runner.interruptions.ssh_servers import connected_to

pytestmark = pytest.mark.unit

SOON_S = 10  # far below what paramiko itself waits, where it does not wait for ever
MUCH = "x" * (8 << 20)  # more than an SSH window


class Server(paramiko.ServerInterface):
    """An SSH server that freezes at one point: `auth`, `session`, `start`, `input`, `output` or `end`."""

    def __init__(self, freezes_at: str) -> None:
        self.freezes_at, self.thawed = freezes_at, threading.Event()

    def reaches(self, point: str) -> bool:
        if point == self.freezes_at:
            self.thawed.wait()
        return True

    def get_allowed_auths(self, _user: str) -> str:
        return "password"

    def check_auth_password(self, _user: str, _password: str) -> int:
        self.reaches("auth")
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, _kind: str, _number: int) -> int:
        self.reaches("session")
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, _command: bytes) -> bool:
        threading.Thread(target=self.answer, args=[channel], daemon=True).start()
        return self.reaches("start")

    def answer(self, channel: paramiko.Channel) -> None:
        """As `cat` would."""
        with suppress(EOFError, OSError, paramiko.SSHException):
            self.reaches("input")
            said = b"".join(iter(lambda: channel.recv(1 << 16), b""))
            self.reaches("output")
            channel.sendall(said)
            channel.shutdown_write()
            self.reaches("end")
            channel.send_exit_status(0)
            channel.close()


@contextmanager
def served(freezes_at: str) -> Iterator[fabric.Connection]:
    """Yield a connection, not yet open, to a server that freezes there; at `banner` it says nothing at all."""
    server = Server(freezes_at)
    with connected_to(server, lambda: server.reaches("banner")) as connection:
        yield connection
    server.thawed.set()


def test_a_call_over_ssh_answers() -> None:
    with served("never") as connection:
        assert call(SshConnection("s0", connection), ["cat"], "hello").stdout == "hello"


@pytest.mark.parametrize(("point", "limit", "message"), [
    ("banner", "connections.OPEN_S", "cannot connect: no answer within 0.3 s"),
    ("auth", "connections.OPEN_S", "cannot connect: no answer within 0.3 s"),
    ("session", "connections.START_S", "no answer within 0.3 s"),
    ("start", "connections.START_S", "no answer within 0.3 s"),
    ("input", "programs.CALL_TIMEOUT_S", "cat took longer than 0.4 s"),
    ("output", "programs.CALL_TIMEOUT_S", "cat took longer than 0.4 s"),
    ("end", "programs.CALL_TIMEOUT_S", "cat took longer than 0.4 s"),
])  # fmt: skip
def test_a_host_that_freezes_is_lost_within_the_calls_deadline(
    point: str, limit: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"roundabout.runner.hosts.{limit}", 0.3)
    monkeypatch.setattr(programs, "GRACE_S", 0.1)
    begun = time.monotonic()
    with served(point) as connection, pytest.raises(LostHostError, match=f"^lost host s0: {message}$"):
        call(SshConnection("s0", connection), ["cat"], MUCH)
    assert time.monotonic() - begun < SOON_S


def test_a_capture_that_does_not_start_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "START_TIMEOUT_S", 0.3)
    host = Host("s0", "s0", "10.0.0.1", 24, "eth0", Path("/opt"))
    with (
        served("output") as connection,
        pytest.raises(LostHostError, match="starting a capture took longer than 0.3 s"),
    ):
        captures.RunningCapture(SshConnection("s0", connection), host, Capture(hosts=["s0"], budget_mb=5))


def test_a_call_that_times_out_ends_on_its_host_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it might set something that was restored already. The host itself ends it, and so can say that it did."""
    monkeypatch.setattr(programs, "CALL_TIMEOUT_S", 0.3)
    write = f"sleep 1; touch {tmp_path}/late"
    begun = time.monotonic()
    with pytest.raises(LostHostError, match="lost host s0: sh took longer than 0.3 s"):
        check_call(LocalConnection("s0"), ["sh", "-c", write])
    time.sleep(max(0, begun + 1.2 - time.monotonic()))
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_ignores_sigterm_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "CALL_TIMEOUT_S", 0.3)
    monkeypatch.setattr(programs, "GRACE_S", 0.1)
    begun = time.monotonic()
    with pytest.raises(LostHostError, match="lost host controller: sh took longer than 0.4 s"):
        call(LocalConnection(), ["sh", "-c", "trap '' TERM; sleep 60; :"])
    assert time.monotonic() - begun < SOON_S


def test_a_proxy_command_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "END_TIMEOUT_S", 0.1)
    tunnel = Tunnel("sh -c 'trap : TERM; echo ready; kill -STOP $$; sleep 60'")
    assert tunnel.socket.recv(16) == b"ready\n"
    begun = time.monotonic()
    tunnel.close()
    assert time.monotonic() - begun < SOON_S


def test_a_program_on_a_connection_that_broke_is_a_lost_host_and_no_bug() -> None:
    with served("output") as connection:
        host = SshConnection("s0", connection)
        program = Program("clock", host, ["cat"])
        host.close()
        with pytest.raises(LostHostError):
            program.send("time")
        program.close_stdin()
        program.finish()
        assert program.lost_connection


def test_nothing_goes_on_at_any_host_when_one_has_failed() -> None:
    """What comes next undoes it."""
    done = []

    def act(name: str) -> None:
        if name == "s0":
            raise RoundaboutError("s0: it broke")
        time.sleep(0.3)
        done.append(name)

    site = SimpleNamespace(hosts={"s0": "s0", "s1": "s1"})
    with ThreadPoolExecutor(2) as pool:
        session = HostSession(site, "me", None, {}, {}, LocalConnection(), lambda: None, pool)
        with pytest.raises(RoundaboutError, match="s0: it broke"):
            session.on_each_host(act)
        assert done == ["s1"]


def test_a_playbook_does_not_outlive_whoever_waited_for_it(tmp_path: Path) -> None:
    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        playbooks.run_ansible(["sh", "-c", "echo begun; exec sleep 60"], str(tmp_path), stop)
    assert time.monotonic() - begun < SOON_S


def test_a_stopped_playbook_is_followed_by_the_end_of_its_workers(tmp_path: Path) -> None:
    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    worker = f"setsid sh -c 'sleep 0.5; touch {tmp_path}/late' > /dev/null 2>&1 & "
    with pytest.raises(KeyboardInterrupt):
        playbooks.run_ansible(["sh", "-c", f"{worker} echo begun; exec sleep 60"], str(tmp_path), stop)
    assert (tmp_path / "late").exists()


@pytest.mark.proof
def test_a_task_of_a_playbook_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbooks, "TASK_TIMEOUT_S", 1)
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    tasks = [{"ansible.builtin.command": {"argv": ["sleep", "60"]}}]
    (tmp_path / "play.yml").write_text(json.dumps([{**play, "tasks": tasks}]))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    begun = time.monotonic()
    status, said = playbooks.run_ansible([program, "-i", "localhost,", str(tmp_path / "play.yml")], str(tmp_path), None)
    assert status != 0 and "imed" in said
    assert time.monotonic() - begun < 2 * SOON_S


def test_time_for_which_this_process_was_stopped_does_not_count() -> None:
    code = """
import queue, threading, time
from roundabout.runner.hosts import deadlines
deadlines.SLICE_S = 0.05
answers, dropped = queue.SimpleQueue(), []
threading.Thread(target=lambda: (time.sleep(0.2), answers.put("late")), daemon=True).start()
with deadlines.within(0.5, lambda: dropped.append(True)):
    print("waiting", flush=True)
    print(deadlines.take_within(answers, deadlines.time_slices(0.5)), dropped, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "late []\n"


def test_a_missing_answer_raises_empty_after_its_patience() -> None:
    empty: queue.SimpleQueue[str] = queue.SimpleQueue()
    begun = time.monotonic()
    with pytest.raises(queue.Empty):
        deadlines.take_within(empty, deadlines.time_slices(0.2))
    assert 0.2 <= time.monotonic() - begun < 2


def test_answers_in_time_use_up_no_patience() -> None:
    coming: queue.SimpleQueue[int] = queue.SimpleQueue()
    patience = deadlines.time_slices(0.2)
    for number in range(100):  # as many trainers may be waited for together
        coming.put(number)
    assert [deadlines.take_within(coming, patience) for _ in range(100)] == list(range(100))
