# SPDX-License-Identifier: Apache-2.0
"""How a host starts a worker that trains: without root's rights, and with a store that only the job's hosts reach."""

import json
import os
import resource
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.running import MAY_RAISE_LIMITS
from tests.trainers.host import FOLDER, load

pytestmark = pytest.mark.lab
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")

LAUNCHER = FOLDER / "worker_launcher.py"
PYTHON = "/usr/bin/python3"
UNLIMITED = -1
REPORT = """
import json, os, resource, socket, sys
sys.stderr.flush()
open("/dev/stderr", "w").write("by name")  # as NCCL opens its log
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
found = {name: status[name].split() for name in ("Uid", "Gid", "CapEff", "NoNewPrivs", "Groups")}
found["scheduler"] = os.sched_getscheduler(0)
found["memlock"] = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
print(json.dumps({**found, "descriptors": os.listdir("/proc/self/fd"), "name": socket.gethostname()}))
"""
store = load("rendezvous_store")


@pytest.fixture
def program() -> Iterator[Path]:
    """A program that all users can read, unlike those in pytest's folders."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.py")
        path.parent.chmod(0o755)
        path.write_text(REPORT)
        path.chmod(0o644)
        yield path


def launched(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PYTHON, str(LAUNCHER), *words], capture_output=True, text=True)


@needs_root
def test_a_worker_that_root_starts_has_a_users_rights_and_what_it_needs_of_roots(program: Path) -> None:
    done = launched("--user", "nobody", PYTHON, str(program))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (set(found["Uid"]), found["CapEff"], found["NoNewPrivs"]) == ({"65534"}, ["0" * 16], ["1"])
    assert set(found["Gid"]) == set(found["Groups"]) == {"65534"}
    assert found["scheduler"] == os.SCHED_RR
    assert found["memlock"] == (UNLIMITED if MAY_RAISE_LIMITS else resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    assert done.stderr == "by name"


@needs_root
def test_a_host_has_another_name_for_horovods_process_alone(program: Path) -> None:
    before = socket.gethostname()
    done = launched("--user", "nobody", "--host-name", "192.0.2.7", PYTHON, str(program))
    assert json.loads(done.stdout)["name"] == "192.0.2.7"
    assert socket.gethostname() == before


@needs_root
def test_a_host_that_cannot_be_renamed_keeps_its_name(program: Path) -> None:
    """Root of a container may lack CAP_SYS_ADMIN, which unshare requires; Horovod then checks the name."""
    words = ("--user", "nobody", "--host-name", "192.0.2.7", PYTHON, str(program))
    limited = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    done = subprocess.run([*limited, PYTHON, str(LAUNCHER), *words], capture_output=True, text=True)
    assert json.loads(done.stdout)["name"] == socket.gethostname()


@needs_root
@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_worker_alone_inherits_the_stores_socket(program: Path, rank: int) -> None:
    program.write_text(
        f"import os, socket; at = os.environ.get('{store.GIVEN}');"
        "print(at and socket.socket(fileno=int(at)).getsockname(), os.getuid())"
    )
    workers = [{"address": f"127.0.9.{host}", "port": 29788} for host in (1, 2)]
    words = ["--rank", str(rank), "--job", json.dumps({"workers": workers})]
    done = launched("--user", "nobody", PYTHON, str(program), *words)
    assert done.stdout == ("None 65534\n" if rank else "('127.0.9.1', 29788) 65534\n")


@needs_root
def test_what_a_user_cannot_read_is_named(program: Path) -> None:
    program.chmod(0o600)
    done = launched("--user", "nobody", PYTHON, str(program))
    assert done.returncode == 1
    message = json.loads(done.stdout)["message"]
    assert f"user 'nobody': cannot read {program}: let all users read it" in message
    assert "this host has no such user: name another" in launched("--user", "stranger", PYTHON, str(program)).stdout


def received(listener: socket.socket, source: str) -> bool:
    """Return True if a connection from `source` comes about."""
    with socket.socket() as client:
        client.settimeout(0.3)
        client.bind((source, 0))
        try:
            client.connect(listener.getsockname())
        except TimeoutError:
            return False
        accepted, _ = listener.accept()
        with accepted:
            client.sendall(b"x")
            return accepted.recv(1) == b"x"


@needs_root
@settings(max_examples=20)  # each waits for a stranger's connection in vain
@given(hosts=st.lists(st.integers(1, 254), max_size=4), stranger=st.integers(1, 254))
def test_the_store_is_for_the_jobs_hosts_alone(hosts: list[int], stranger: int) -> None:
    """At any address but the given one nothing listens; the kernel drops what others than the job's hosts send."""
    with closing(store.listen("127.0.9.1", 0, [f"127.0.9.{each}" for each in hosts])) as listener:
        for source in {*hosts[:2], stranger}:
            # What the listener's own address sends back to itself counts, as for the first worker's own connection.
            assert received(listener, f"127.0.9.{source}") == (source in hosts)
        with socket.socket() as elsewhere, pytest.raises(ConnectionRefusedError):
            elsewhere.connect(("127.0.9.2", listener.getsockname()[1]))


@pytest.mark.parametrize(("known", "said"), [
    ({"master_listen_fd", "use_libuv"}, ""),
    ({"master_listen_fd"}, ""),
    (set(), "this PyTorch has no master_listen_fd: its store listens at all addresses\n"),
], ids=["PyTorch 2.4", "PyTorch 2.1", "PyTorch 1.13"])  # fmt: skip
def test_each_pytorch_gets_the_options_that_it_has(
    known: set[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[dict[str, Any]] = []

    def tcp_store(*_: object, **options: Any) -> str:
        if options.keys() - known:
            raise TypeError("incompatible constructor arguments")
        calls.append(options)
        if "master_listen_fd" in options:
            os.close(options["master_listen_fd"])
        return "store"

    assert store.create_store(tcp_store, "127.0.9.1", 29777, 2, True, 1, ["127.0.9.1"]) == "store"
    assert [set(each) for each in calls] == [known]
    assert capsys.readouterr().err == said
    assert store.create_store(tcp_store, "127.0.9.1", 29777, 2, False, 1) == "store"
    assert calls[1] == {}
