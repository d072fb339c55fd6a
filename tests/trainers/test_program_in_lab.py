# SPDX-License-Identifier: Apache-2.0
"""iperf3 as a job in a real lab: its figures against the bytes that the kernel counted meanwhile."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.reading.data import filter_rows
from roundabout.api import run_experiment
from roundabout.spec import load_experiment

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
    "schema": 1, "name": "iperf3", "about": "iperf3 beside a replayed job", "topology": "dumbbell-2x2",
    "profile": "ddp-lab", "transport": {"name": "dcqcn"}, "iterations": 4,
    "jobs": {"j1": {"workers": ["s0", "s2"], "trainer": TRAINER}, "j2": {"workers": ["s1", "s3"]}},
}  # fmt: skip


def test_bandwidths_are_those_of_the_hosts_counters(tmp_path: Path) -> None:
    (tmp_path / "iperf3.yaml").write_text(json.dumps(EXPERIMENT))
    run = run_experiment(load_experiment(tmp_path / "iperf3.yaml"), runs=tmp_path / "runs", quiet=True)
    (trial,) = run.trials()
    rows = filter_rows(run.table("iterations", valid_only=False), job="j1").to_pylist()
    assert [(row["host"], row["iteration"]) for row in rows] == [("s2", each) for each in range(4)], trial["reason"]
    assert [row["iteration_ms"] for row in rows] == pytest.approx([500] * 4, abs=50)
    samples = filter_rows(run.table("counters", valid_only=False), host="s2")
    for row in rows:
        instants = [row["start_ns"], row["comm_end_ns"]]
        counted = np.diff(np.interp(instants, samples["controller_ns"].to_numpy(), samples["tx_bytes"].to_numpy()))
        counted_gbps = 8 * counted.item() / np.diff(instants).item()
        assert row["bus_bandwidth_gbps"] == pytest.approx(counted_gbps, rel=0.05, abs=2)  # of hundredths, times 100
