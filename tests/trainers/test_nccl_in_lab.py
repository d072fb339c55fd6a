# SPDX-License-Identifier: Apache-2.0
"""A program that logs as NCCL does, on a lab's hosts: it has its settings there, and its log is held against them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.proof]
ROOT = Path(__file__).parents[2]
PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time
environment, used, job = os.environ, sys.argv[1], json.loads(sys.argv[2])
with open(environment["NCCL_DEBUG_FILE"], "w") as log:
    interface = used or environment["NCCL_SOCKET_IFNAME"][1:]
    for line in (f"NET/Socket : Using [0]{interface}:10.0.0.1<0>", f"Using network {environment['NCCL_NET']}",
                 "Channel 00 : 0[1b000] -> 1[1b000] [send] via NET/Socket/0"):
        print(f"here:1:2 [0] NCCL INFO {line}", file=log)
print(json.dumps({"event": "ready"}), flush=True)
start_ns = int(sys.stdin.readline().split()[1])
time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9)
instants = dict.fromkeys(("start_ns", "compute_end_ns", "comm_end_ns"), start_ns)
counted = dict.fromkeys(("iteration", "sent_bytes", "received_bytes", "late_ns"), 0)
print(json.dumps({"event": "iteration", **counted, **instants}))
print(json.dumps({"event": "done", "iterations": 1}), flush=True)
"""
MODEL = """
from typing import ClassVar, Literal
from roundabout.spec.training.trainer import BaseTrainer

class Trainer(BaseTrainer):
    program: ClassVar[str] = "trainers/speaker/speaker.py"
    name: Literal["speaker"]
    used: str = ""

    @property
    def nccl(self):
        return True

    def argv(self, task):
        return (self.path_on_host(task), self.used, task.job_json)
"""
EXPERIMENT = """
schema: 1
name: spoken
about: NCCL that does as set, and one that does not
topology: dumbbell-2x2
profile: vgg19-fig1
jobs: {j1: {workers: [s0, s2], trainer: {name: speaker}}}
iterations: 1
transport: {name: reno}
factors:
  variant: {as-set: {}, otherwise: {jobs: {j1: {trainer: {used: eth9}}}}}
"""

RUN = """from pathlib import Path
from roundabout.api import run_experiment
from roundabout.spec import load_experiment
run_experiment(load_experiment(Path("spoken.yaml")), runs=Path("runs"), quiet=True)
"""


def test_a_trial_whose_nccl_differs_is_invalid_and_says_in_what(tmp_path: Path) -> None:
    places = {"trainers/speaker/speaker.py": PROGRAM, "roundabout/spec/trainers/speaker.py": MODEL}
    for name, text in places.items():
        path = tmp_path / "outside" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "spoken.yaml").write_text(EXPERIMENT)
    environment = {**os.environ, "ROUNDABOUT_PATH": str(tmp_path / "outside"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert Run.all(tmp_path / "runs"), done.stderr
    run = Run.open("last", tmp_path / "runs")
    trials = {trial["variant"]: trial for trial in run.trials()}
    assert "NCCL" not in trials["as-set"]["reason"], done.stderr
    for host, rank in (("s0", 0), ("s2", 1)):
        worker = f"job j1, worker {rank} on {host}"
        found = trials["as-set"]["nccl"][worker]
        expected = found["asked"]["NCCL_SOCKET_IFNAME"].removeprefix("=")
        assert found["used"]["interfaces"] == [expected]
        assert not trials["otherwise"]["valid"]
        said = f"{worker}: NCCL's interfaces: found eth9, expected {expected}"
        assert said in trials["otherwise"]["reason"], json.dumps(trials["otherwise"], indent=1)
