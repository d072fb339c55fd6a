# SPDX-License-Identifier: Apache-2.0
"""Jobs that really train: what needs no PyTorch. The rest is a proof, tests/trainers/test_training.py."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from roundabout.plan import make_plan
from roundabout.runner.trial.jobs import slurm_hosts
from roundabout.runner.trial.validity_checks import slow_computing
from roundabout.spec import load_experiment, load_profile
from roundabout.spec.profile import ring_allreduce_bytes
from roundabout.spec.trainers import DEFAULT, MODELS
from roundabout.spec.trainers.ddp import Trainer
from roundabout.spec.training.launch import SLURM_PROBE
from roundabout.spec.training.trainer import Task
from tests.trainers.host import FOLDER, load

pytestmark = pytest.mark.lab

PROGRAM = FOLDER / "ddp.py"
HOROVOD = MODELS["horovod"].model_validate({"name": "horovod", "python": sys.executable})
DEEPSPEED = MODELS["deepspeed"].model_validate({"name": "deepspeed", "python": sys.executable})
training, flows_of, sizes = load("training"), load("training_flows"), load("training_sizes")
LAUNCHED = ("/usr/bin/python3", "/opt/roundabout/bin/worker_launcher.py", "--user", "nobody")
WORKERS = [{"name": name, "address": "127.0.0.1", "port": 29500 + rank} for rank, name in enumerate("abc")]


def described(transfers: list[list[int]], workers: int = 2) -> dict[str, Any]:
    phases = [{"name": "compute", "compute_ms": 1.0}, {"name": "send", "alone_ms": 1.0, "transfers": transfers}]
    every = [{**WORKERS[0], "name": f"s{rank}"} for rank in range(workers)]
    return {"name": "j1", "seed": 1, "iterations": 1, "departs_ms": None, "workers": every, "phases": phases}


def start_agent(script: str, *words: str) -> subprocess.Popen[Any]:
    """Python at work, whose input stays open."""
    call, pipe = [sys.executable, "-c", script, *words], subprocess.PIPE
    return subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True)


@given(parameters=st.integers(100_000, 10**9), workers=st.integers(2, 16))
def test_gradients_are_as_many_bytes_as_the_profile_says(parameters, workers):
    sent = ring_allreduce_bytes(parameters, workers)
    ring = [[rank, (rank + 1) % workers, sent] for rank in range(workers)]
    numbers = sizes.gradient_numbers(described(ring, workers))
    assert numbers == pytest.approx(parameters, abs=1)
    hidden = sizes.width(numbers)
    features, classes = sizes.FEATURES, sizes.CLASSES
    network = (features + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * classes
    assert network <= numbers
    assert network == pytest.approx(numbers, rel=0.01)


def test_a_pattern_other_than_a_ring_is_refused():
    with pytest.raises(ValueError, match="found phase 'send', expected a ring of all workers"):
        sizes.gradient_numbers(described([[0, 1, 1000]]))


def test_too_few_numbers_for_a_network_are_refused():
    with pytest.raises(ValueError, match="found gradients of 5 numbers, expected 87 or more"):
        sizes.width(5)
    assert sizes.width(87) == 1


def test_a_job_with_departure_or_timetable_is_refused():
    with pytest.raises(ValueError, match="found a departure or a timetable"):
        training.refuse({"departs_ms": 1.0})
    with pytest.raises(ValueError, match="found a departure or a timetable"):
        training.refuse({"departs_ms": None, "timetable": {}})
    training.refuse({"departs_ms": None})


def test_an_interface_is_found_by_its_address():
    assert flows_of.interface("127.0.0.1") == "lo"
    with pytest.raises(ValueError, match=r"no interface with the address 192\.0\.2\.1"):
        flows_of.interface("192.0.2.1")


def test_connections_to_other_workers_are_counted_by_the_kernel():
    workers = [{**each, "address": f"127.0.0.{rank + 1}"} for rank, each in enumerate(WORKERS)]
    sent = np.random.default_rng(1).bytes(100_000)
    with (
        socket.create_server(("127.0.0.2", 0)) as listener,
        socket.create_connection(listener.getsockname(), source_address=("127.0.0.1", 0)) as ours,
        listener.accept()[0] as theirs,
    ):
        flows = flows_of.Flows(workers, rank=0)
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        while theirs.recv(65536):
            pass
        theirs.sendall(sent[:7])
        assert ours.recv(100) == sent[:7]
        assert flows.bytes() == (100_000, 7)
        (event,) = flows.events()
        flows.close()
        local, remote = ours.getsockname()[1], ours.getpeername()[1]
    about = {name: event[name] for name in ("peer", "peer_rank", "local_port", "remote_port", "delivered_ce")}
    expected = {"peer": "b", "peer_rank": 1, "local_port": local, "remote_port": remote}
    assert about == {**expected, "delivered_ce": 0}
    assert event["bytes_acked"] >= 100_000  # the kernel counts what opens and ends a connection, too
    assert event["congestion_control"]


def test_the_rendezvous_does_not_count_as_a_connection_of_the_job():
    with socket.create_server(("127.0.0.7", 0)) as listener:
        port = listener.getsockname()[1]
        met = [{**WORKERS[0], "port": port}, {**WORKERS[1], "address": "127.0.0.7"}]
        with socket.create_connection(("127.0.0.7", port)) as ours, listener.accept()[0]:
            ours.sendall(b"one of these is here")
            assert flows_of.Flows(met, rank=0).bytes() == (0, 0)
            met[0]["port"] += 1
            flows = flows_of.Flows(met, rank=0)
            assert flows.bytes()[0] == len(b"one of these is here")
            flows.close()


def test_without_pytorch_it_says_so():
    run = f"""import runpy, sys
sys.path.insert(0, {str(FOLDER)!r})
sys.modules["torch"] = None
runpy.run_path({str(PROGRAM)!r}, run_name="__main__")"""
    task = Task(described([[0, 1, 9], [1, 0, 9]]), 0, PurePosixPath("/"))
    arguments = Trainer(name="ddp").argv(task)[len(LAUNCHED) + 2 :]
    with start_agent(run, *arguments) as process:
        event = json.loads(process.stdout.readline())
        assert (process.wait(timeout=60), event["event"]) == (1, "error")
    assert event["message"].startswith(f"{sys.executable} cannot train so (")
    assert "docs/how-to/training.md" in event["message"]


def test_the_command_line_of_a_worker():
    task = Task({"name": "j1"}, 1, PurePosixPath("/opt/roundabout"))
    program = (*LAUNCHED, "/usr/bin/python3", "/opt/roundabout/bin/ddp.py")
    arguments = ("--rank", "1", "--job", '{"name":"j1"}', "--batch", "16")
    assert Trainer(name="ddp").argv(task) == (*program, *arguments, "--paced")
    assert Trainer(name="ddp", paced=False).argv(task) == (*program, *arguments)
    assert Trainer(name="ddp", record="kineto").argv(task) == (*program, *arguments, "--record", "kineto", "--paced")


def test_the_command_line_under_torchrun():
    job = described([[0, 1, 9], [1, 0, 9]])
    argv = Trainer(name="ddp", launch="torchrun").argv(Task(job, 1, PurePosixPath("/opt/roundabout")))
    run = ("/usr/bin/python3", "/opt/roundabout/bin/torchrun.py", "--nnodes=2", "--node_rank=1", "--nproc_per_node=1")
    meeting = ("--master_addr=127.0.0.1", "--master_port=29500", "--monitor_interval=1")
    assert argv[: len(LAUNCHED) + 10] == (*LAUNCHED, *run, *meeting, "/opt/roundabout/bin/ddp.py", "--rank")


def test_through_slurm_a_worker_gets_what_it_gets_directly():
    task = Task(described([[0, 1, 9], [1, 0, 9]]), 1, PurePosixPath("/opt/roundabout"))
    through = Trainer(name="ddp", launch="slurm")
    assert through.argv(task) == Trainer(name="ddp").argv(task)
    assert [each.scheduled for each in (through, Trainer(name="ddp"), DEFAULT)] == [True, False, False]


def test_hosts_of_workers_through_slurm_are_checked_for_it(tmp_path):
    experiment = {
        "name": "scheduled",
        "about": "One of two jobs goes through Slurm",
        "topology": "dumbbell-2x2",
        "profile": "ddp-lab",
        "iterations": 1,
        "transport": {"name": "cubic"},
        "jobs": {
            "j1": {"workers": ["s0", "s2"], "trainer": {"name": "ddp", "launch": "slurm"}},
            "j2": {"workers": ["s1", "s3"], "trainer": {"name": "ddp"}},
        },
    }
    file = tmp_path / "scheduled.yaml"
    file.write_text(json.dumps(experiment))
    loaded = load_experiment(file)
    assert {host for host, probe in loaded.probes if probe == SLURM_PROBE} == {"s0", "s2"}
    (trial,) = make_plan(loaded, {}, {}).trials
    assert slurm_hosts(trial) == ["s0", "s2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stop 1", "found 'stop 1' on standard input, expected: start MONOTONIC_NS"),
        ("start soon", "found 'start soon' on standard input"),
        ("start 1", r"found a start -[0-9.]+ s ahead, expected one to come"),
        ("start 9999999999999999999", "expected one to come, within a day"),
    ],
)
def test_a_start_that_is_none_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        training.start_of(f"{line}\n")


def test_a_start_to_come_is_taken():
    at_ns = time.monotonic_ns() + 60_000_000_000
    assert training.start_of(f"start {at_ns}\n") == at_ns


def test_a_trainer_ends_when_its_stdin_closes():
    script = f"""import sys, time
sys.path.insert(0, {str(FOLDER)!r})
import training
print(training.read_lines().get(), end="", flush=True)
time.sleep(600)"""
    with start_agent(script) as process:
        process.stdin.write("first\n")
        process.stdin.flush()
        assert process.stdout.readline() == "first\n"
        process.stdin.close()
        assert process.stdout.read() == '{"event":"stopped","reason":"standard input was closed"}\n'
        assert process.wait(timeout=60) == 3


def test_output_of_frameworks_goes_to_stderr():
    script = f"""import os, sys
sys.path.insert(0, {str(FOLDER)!r})
import training
training.keep_output()
print("from Python")
os.system("echo from elsewhere")
training.say("ready")"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == '{"event":"ready"}\n'
    assert sorted(done.stderr.splitlines()) == ["from Python", "from elsewhere"]


def test_horovod_is_refused_where_a_hosts_name_leads_elsewhere(monkeypatch):
    horovod = load("with_horovod")
    monkeypatch.setattr(horovod, "resolved_address", lambda: "127.0.1.1")
    with pytest.raises(ValueError, match=r"found 127\.0\.1\.1 for the host's name .*, expected 10\.0\.0\.1"):
        horovod.check_found("10.0.0.1")
    horovod.check_found("127.0.1.1")


@pytest.mark.parametrize(
    ("trainer", "name", "remedy"),
    [
        (Trainer(name="ddp", python=sys.executable), "PyTorch", "./bootstrap training"),
        (Trainer(name="ddp", python=sys.executable, backend="nccl"), "PyTorch", "./bootstrap training"),
        (HOROVOD, "Horovod", "HOROVOD_WITH_PYTORCH=1 pip install horovod"),
        (DEEPSPEED, "DeepSpeed", "DS_BUILD_OPS=0 pip install deepspeed"),
    ],
)
def test_a_missing_framework_is_named_before_any_trial(trainer, name, remedy, tmp_path):
    if name != "PyTorch":
        (tmp_path / "torch.py").touch()
    around = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(trainer.probe, capture_output=True, text=True, env=around)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{sys.executable} has no {name}: {remedy}, or name an interpreter")


def test_a_host_without_a_gpu_is_reported_before_any_trial_over_nccl(tmp_path):
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)")
    trainer = Trainer(name="ddp", python=sys.executable, backend="nccl")
    around = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(trainer.probe, capture_output=True, text=True, env=around)
    assert (done.returncode, done.stderr) == (1, "found no GPU: say `backend: gloo`\n")


def test_hosts_of_trainers_only_are_checked():
    assert load_experiment("ddp-lab").probes == {(f"s{number}", Trainer(name="ddp").probe) for number in range(4)}
    assert load_experiment("unfair-vgg19").probes == set()


def test_computing_beyond_the_pace_makes_the_trial_invalid():
    trial = next(
        each for each in make_plan(load_experiment("ddp-lab"), {}, {}).trials if each.levels["variant"] == "fair"
    )

    def found(times_ms: dict[str, float]) -> list[str]:
        rows = {"job": [*times_ms], "compute_ms": [*times_ms.values()]}
        return slow_computing(trial, pa.table(rows))

    assert load_profile("ddp-lab").compute_ms == 100
    assert found({"j1": 102.9, "j2": 100.0}) == []
    assert found({"j1": 100.0, "j2": 103.1}) == ["computing took j2 103.1 ms, expected 100 (limit +3%)"]
