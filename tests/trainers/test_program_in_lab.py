# SPDX-License-Identifier: Apache-2.0
"""iperf3, and an all-reduce under torchrun, as jobs in a real lab: their figures against bytes that the kernel counted.

TRAINING_PYTHON names an interpreter with PyTorch (`make setup-proofs` installs none; docs/how-to/training.md does).
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.reading.data import filter_rows
from roundabout.api import run_experiment
from roundabout.spec import load_experiment
from roundabout.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.quiet]
COMMAND = """
if [ $RANK = 0 ]; then iperf3 -s -1 -B $ADDRESS -p $MASTER_PORT; else
sleep 0.3; iperf3 -c $MASTER_ADDR -p $MASTER_PORT -i 0.5 -f g -t $((ITERATIONS / 2 + 1)); fi
"""
TRAINER = {
    "name": "program", "reporter": "last", "command": COMMAND,
    "pattern": r"(?P<gbps>\S+) Gbits/sec(?!.*(sender|receiver))",
}  # fmt: skip
EXPERIMENT = {
    "schema": 1, "name": "program", "about": "A program beside a replayed job", "topology": "dumbbell-2x2",
    "profile": "ddp-lab", "transport": {"name": "dcqcn"}, "iterations": 4,
}  # fmt: skip


PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
# PyTorch's own torchrun. That of PyTorch 1.13 needs Python 3.10: trainers/torch/torchrun.py says why.
TORCHRUN = """
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import Std
if Std.from_str("0") is None:
    Std.from_str = classmethod(lambda kind, reported: kind(int(reported)))
run.main()
"""
ALL_REDUCE = """
import os, time
import torch, torch.distributed as distributed
distributed.init_process_group("gloo")
gradients = torch.ones(4 << 20)
for step in range(int(os.environ["ITERATIONS"])):
    begin = time.monotonic()
    distributed.all_reduce(gradients)
    ms = 1e3 * (time.monotonic() - begin)
    print(f"step {step}: {4 * gradients.numel()} bytes in {ms:.3f} ms", flush=True)
distributed.barrier()
"""
TORCHRUN_COMMAND = (
    f"{PYTHON} -c {shlex.quote(TORCHRUN)} --no_python --nnodes=$WORLD_SIZE --node_rank=$RANK --nproc_per_node=1 "
    f"--master_addr=$MASTER_ADDR --master_port=$MASTER_PORT {PYTHON} -c {shlex.quote(ALL_REDUCE)}"
)


def run_program(folder: Path, trainer: dict[str, Any]) -> Run:
    jobs = {"j1": {"workers": ["s0", "s2"], "trainer": trainer}, "j2": {"workers": ["s1", "s3"]}}
    (folder / "program.yaml").write_text(json.dumps({**EXPERIMENT, "jobs": jobs}))
    return run_experiment(load_experiment(folder / "program.yaml"), runs=folder / "runs", quiet=True)


def check_bandwidths(run: Run, rows: list[dict[str, Any]], tolerance: float) -> None:
    """Compare the bandwidth of each row with the bytes that its host sent in the time of the row."""
    samples = filter_rows(run.table("counters", valid_only=False), host=rows[0]["host"])
    for row in rows:
        instants = [row["start_ns"], row["comm_end_ns"]]
        counted = np.diff(np.interp(instants, samples["controller_ns"].to_numpy(), samples["tx_bytes"].to_numpy()))
        counted_gbps = 8 * counted.item() / np.diff(instants).item()
        assert row["bus_bandwidth_gbps"] == pytest.approx(
            counted_gbps, rel=tolerance, abs=2
        )  # of hundredths, times 100


@pytest.mark.proof
def test_an_all_reduce_under_torchrun_has_the_bandwidth_of_the_hosts_counters(tmp_path: Path) -> None:
    """Each of two ranks sends as many bytes as it reduces: half of them reduced, then half of them gathered."""
    pattern = r"step (?P<iteration>\d+): (?P<bytes>\d+) bytes in (?P<ms>\S+) ms"
    run = run_program(tmp_path, {"name": "program", "command": TORCHRUN_COMMAND, "pattern": pattern})
    (trial,) = run.trials()
    rows = filter_rows(run.table("iterations", valid_only=False), job="j1").to_pylist()
    assert [(row["host"], row["iteration"]) for row in rows] == [("s0", each) for each in range(4)], trial["reason"]
    check_bandwidths(run, rows, 0.1)


def test_bandwidths_are_those_of_the_hosts_counters(tmp_path: Path) -> None:
    run = run_program(tmp_path, TRAINER)
    (trial,) = run.trials()
    rows = filter_rows(run.table("iterations", valid_only=False), job="j1").to_pylist()
    assert [(row["host"], row["iteration"]) for row in rows] == [("s2", each) for each in range(4)], trial["reason"]
    assert [row["iteration_ms"] for row in rows] == pytest.approx([500] * 4, abs=50)
    check_bandwidths(run, rows, 0.05)
