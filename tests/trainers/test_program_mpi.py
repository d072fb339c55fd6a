# SPDX-License-Identifier: Apache-2.0
"""A program that Open MPI's mpirun starts: an all-reduce over TCP on this machine, as `all_reduce_perf` is started."""

import json
import shlex
import shutil
import sys
from typing import Any

import pytest

from roundabout.core.paths import ROOT
from roundabout.spec.training.output_patterns import PATTERNS
from tests.running import Running

pytestmark = [
    pytest.mark.unit,
    pytest.mark.proof,
    pytest.mark.skipif(not shutil.which("mpirun"), reason="needs openmpi-bin: make setup-proofs"),
]

ITERATIONS = 5
# The columns of nccl-tests, out of place. The library's constants are those of Open MPI 4.1's mpi.h.
ALL_REDUCE = """
import ctypes, sys, time
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
world, floats, total = (
    ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name)) for name in ("comm_world", "float", "op_sum")
)
count, rank = 1 << 20, ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
sent, received = (ctypes.c_float * count)(*[1.0] * count), (ctypes.c_float * count)()
for _ in range(int(sys.argv[1])):
    begin = time.monotonic()
    mpi.MPI_Allreduce(sent, received, count, floats, total, world)
    s = time.monotonic() - begin
    if rank.value == 0 and received[count - 1] == 2:
        gbps = 4e-9 * count / s  # of two ranks, the bus bandwidth is the algorithm's
        print("%d %d float sum -1 %.1f %.6f %.6f 0" % (4 * count, count, s * 1e6, gbps, gbps), flush=True)
mpi.MPI_Finalize()
"""
MPIRUN = (
    "mpirun --allow-run-as-root --oversubscribe --tag-output -np 2 --mca pml ob1 --mca btl tcp,self "
    f"--mca btl_tcp_if_include lo {sys.executable} -c {shlex.quote(ALL_REDUCE)} $ITERATIONS"
)


def started(command: str) -> Running:
    workers = [{"name": f"s{number}", "address": f"127.0.0.{number + 1}", "port": 29500} for number in range(2)]
    job = {"name": "j1", "workers": workers, "iterations": ITERATIONS, "begins_ms": 0, "departs_ms": None}
    options: dict[str, Any] = {"pattern": PATTERNS["nccl-tests"], "file": None, "skip": 0, "startup_s": 60}
    program = ROOT / "trainers/program/run_program.py"
    running = Running([sys.executable, str(program), "0", json.dumps(job), json.dumps({**options, "command": command})])
    assert running.event() == {"event": "ready"}
    running.begin()
    return running


def test_an_all_reduce_by_mpirun_reports_its_times_and_bandwidths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "trainers/torch"))  # a host has all programs in one folder
    worker = started(MPIRUN)
    events = [worker.event() for _ in range(ITERATIONS)]
    assert [each["iteration"] for each in events] == list(range(ITERATIONS))
    for each in events:
        s = (each["comm_end_ns"] - each["start_ns"]) / 1e9
        assert each["bus_bandwidth_gbps"] == pytest.approx(8 * 4e-9 * (1 << 20) / s, rel=0.02)
    assert worker.event() == {"event": "done", "iterations": ITERATIONS}
    assert worker.status() == 0
    assert worker.process.communicate() == ("", "")
