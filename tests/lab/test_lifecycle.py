# SPDX-License-Identifier: Apache-2.0
"""Labs come up, go down and leave nothing, whatever happens in between."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.lifecycle import lab as lab_module
from roundabout.testbeds.lab.lifecycle.locks import lock_folder
from roundabout.testbeds.lab.network import link_measurement, paths, port_queues
from roundabout.testbeds.lab.network.namespaces import run_inside

from .conftest import (
    NOTHING,
    bpf_objects,
    bpf_objects_alive,
    devices,
    namespaces,
    namespaces_in_use,
    traces,
    wait_until,
)

pytestmark = [pytest.mark.lab, pytest.mark.quiet]


def test_down_leaves_nothing(topology, lab_name):
    devices_before = devices()
    lab = Lab.create(topology, lab_name())
    used, objects = namespaces(lab), bpf_objects(lab)
    assert len(used) == 6
    assert {kind for kind, _ in objects} == {"prog", "map"}
    assert devices() == devices_before
    Lab.remove(lab.name)
    assert traces(lab.name) == NOTHING
    assert not used & namespaces_in_use()
    assert not objects & bpf_objects_alive()
    assert devices() == devices_before


# Milliseconds after the lab's folder appears, spread over keys, inits, links, marking, measuring and standing.
@pytest.mark.parametrize("moment_ms", [0, 4, 10, 18, 26, 40, 60, 90, 150, 400])
def test_down_clears_what_sigkill_left(lab_name, moment_ms):
    name = lab_name()
    builder = subprocess.Popen([sys.executable, "-m", "roundabout.cli.main", "lab", "up", "--name", name])
    assert wait_until((paths.LABS / name).exists, 20)
    time.sleep(moment_ms / 1000)
    builder.kill()
    builder.wait()
    Lab.remove(name)
    assert wait_until(lambda: traces(name) == NOTHING), traces(name)


def test_an_interrupt_waits_for_who_still_writes(lab_name, monkeypatch, tmp_path):
    """Removing a lab while ssh-keygen wrote its key into it ended in `Directory not empty`."""
    slow = tmp_path / "ssh-keygen"
    slow.write_text(f'#!/bin/sh\nsleep 0.6\nexec {shutil.which("ssh-keygen")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    name = lab_name()
    # Tests in a shell's background were started to ignore Ctrl-C.
    with_sigint = ["env", "--default-signal=INT"]
    command = [*with_sigint, sys.executable, "-m", "roundabout.cli.main", "lab", "up", "--name", name]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as builder:
        assert wait_until((paths.LABS / name / "share").exists, 20)
        builder.send_signal(signal.SIGINT)
        _, complaint = builder.communicate()
    assert (builder.returncode, "unexpected" in complaint) == (130, False), complaint
    assert traces(name) == NOTHING


def test_half_built_lab_is_named_as_such(topology, lab_name, monkeypatch):
    name = lab_name()
    monkeypatch.setattr("roundabout.testbeds.lab.lifecycle.lab.remove_all_parts", lambda lab: None)
    monkeypatch.setattr("roundabout.testbeds.lab.network.network.build", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Lab.create(topology, name)
    monkeypatch.undo()
    with pytest.raises(LabError, match="never finished"):
        Lab.open(name)
    Lab.remove(name)
    assert traces(name) == NOTHING


@pytest.mark.parametrize(
    "step",
    [
        "lifecycle.ssh.write_files",
        "network.nodes.start_all",
        "network.network.build",
        "ecn.marking.attach",
        "network.link_measurement.measure_links",
    ],
)
def test_up_undoes_what_it_made_when_a_step_fails(topology, lab_name, monkeypatch, step):
    def fail(*_: object, **__: object) -> None:
        raise LabError("made to fail")

    name = lab_name()
    monkeypatch.setattr(f"roundabout.testbeds.lab.{step}", fail)
    with pytest.raises(LabError, match="made to fail"):
        Lab.create(topology, name)
    assert traces(name) == NOTHING


@pytest.mark.parametrize(("factor", "measured"), [(0.93, r"39\.\d\d|40\.0\d"), (1.08, r"4[56]\.\d\d")])
def test_wrong_rate_of_the_trunk_is_an_error(topology, lab_name, monkeypatch, factor, measured):
    """Too fast as well: its access links are as fast as it, so one flow alone would not show it."""
    true_queues = port_queues.port_queues

    def wrong(*words):
        return {
            port: port_queues.Queue(round(queue.drain_bytes_per_s * factor), queue.limit_bytes)
            if port.towards == "tor1"
            else queue
            for port, queue in true_queues(*words).items()
        }

    name = lab_name()
    monkeypatch.setattr(port_queues, "port_queues", wrong)
    monkeypatch.setattr(link_measurement, "MEASUREMENT_TIMEOUT_S", 1.0)
    message = rf"link L1, from tor0 to tor1: measured ({measured}) Gbit/s of payload, expected 43 within 3%"
    with pytest.raises(LabError, match=message):
        Lab.create(topology, name)
    assert traces(name) == NOTHING


def test_labs_side_by_side_do_not_see_each_other(topology, lab_name):
    one, other = (Lab.create(topology, lab_name(), verify=False) for _ in range(2))
    address = one.hosts["s0"].address
    assert address == other.hosts["s0"].address
    with run_inside(one.pids()["s0"], lambda: socket.create_server((address, 5000))):
        run_inside(one.pids()["s2"], lambda: socket.create_connection((address, 5000), timeout=2)).close()
        with pytest.raises(ConnectionRefusedError):
            run_inside(other.pids()["s2"], lambda: socket.create_connection((address, 5000), timeout=2))
    Lab.remove(one.name)
    assert None not in other.pids().values()
    assert set(other.counters()) == {port.ifindex for port in other.ports}
    Lab.remove(other.name)
    assert traces(one.name) == traces(other.name) == NOTHING


def test_a_labs_name_cannot_be_used_twice(topology, lab_name):
    name = lab_name()
    Lab.create(topology, name, verify=False)
    with pytest.raises(LabError, match="exists already"):
        Lab.create(topology, name, verify=False)
    assert Lab.open(name).name == name


@pytest.mark.parametrize("name", ["", "../x", "a b", "a/b", ".", "x" * 41])
def test_an_invalid_lab_name_is_refused(topology, name):
    if os.geteuid() != 0:
        pytest.skip("a lab needs root")
    with pytest.raises(LabError, match="cannot be called"):
        Lab.create(topology, name or "/")
    with pytest.raises(LabError, match="cannot be called"):
        Lab.remove(name)


def test_down_refuses_while_someone_builds(topology, lab_name, monkeypatch):
    monkeypatch.setattr(lab_module, "DYING_S", 0.2)
    lab = Lab.create(topology, lab_name(), verify=False)
    with lock_folder(lab.files.root), pytest.raises(LabError, match="being built or taken down"):
        Lab.remove(lab.name)


def test_down_works_without_built_tools(topology, lab_name, monkeypatch, tmp_path):
    lab = Lab.create(topology, lab_name(), verify=False)
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    Lab.remove(lab.name)
    assert traces(lab.name) == NOTHING


def test_killing_a_hosts_init_ends_all_in_it(topology, lab_name):
    lab = Lab.create(topology, lab_name(), verify=False)
    sleeper = f"sleep 987{os.getpid()}"
    ssh = ["ssh", "-F", str(lab.ssh_config()), "s1", f"setsid {sleeper} >/dev/null 2>&1 </dev/null &"]
    subprocess.run(ssh, check=True)
    assert wait_until(lambda: len(_running(sleeper)) == 1)
    os.kill(lab.pids()["s1"] or 0, signal.SIGKILL)
    assert wait_until(lambda: not _running(sleeper))
    with pytest.raises(LabError, match="broken: s1 died"):
        Lab.open(lab.name)
    failed = subprocess.run([*ssh[:-1], "true"], capture_output=True, text=True, check=False)
    assert failed.returncode
    assert "this lab host is not running" in failed.stderr
    Lab.remove(lab.name)
    assert traces(lab.name) == NOTHING


def test_recycled_pid_is_not_killed(topology, lab_name):
    """A pid file that no process holds says nothing, whatever pid it names."""
    lab = Lab.create(topology, lab_name(), verify=False)
    os.kill(lab.pids()["s1"] or 0, signal.SIGKILL)
    assert wait_until(lambda: lab.pids()["s1"] is None)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        lab.files.pid_file("s1").write_text(f"{stranger.pid}\n")
        Lab.remove(lab.name)
        assert stranger.poll() is None
        stranger.kill()


def test_virtual_queue_is_there_for_older_kernels(topology, lab_name, monkeypatch):
    monkeypatch.setattr(marking, "FORCED", "mark_by_virtual_queue")
    lab = Lab.create(topology, lab_name(), verify=False)
    assert lab.record.marking == "mark_by_virtual_queue"


def _running(command: str) -> list[Path]:
    """The processes on this machine whose command line is `command`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip() == command:
                found.append(entry)
    return found
