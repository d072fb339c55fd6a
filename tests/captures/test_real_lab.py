# SPDX-License-Identifier: Apache-2.0
"""A captured trial in a real lab: from the experiment file to packets that agree with what the trainers sent."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.reading.cross_traffic.injection import flows_of_packets
from roundabout.api import run_experiment
from roundabout.spec import load_experiment
from roundabout.testbeds.lab.calibration.calibration import load_calibration

pytestmark = [pytest.mark.lab, pytest.mark.quiet, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

EXPERIMENT = """
name: captured
about: A few iterations of one job, one worker captured
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg16-fig3, workers: [s0, s2]}
iterations: 4
transport: {name: dcqcn, T_us: 125}
capture: {hosts: [s0], snap_bytes: 96, budget_mb: 20}
"""


BESIDE = """
name: beside
about: A few iterations of one job, and the sender of burst traffic captured
topology: configuration-b
jobs:
  dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}
cross_traffic:
  websearch: {kind: burst, from: s2, to: [s0], load_gbps: 20}
iterations: 8
transport: {name: cubic}
capture: {hosts: [s2], budget_mb: 50}
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trial, whatever its verdict: a test machine may be loaded."""
    return run(tmp_path_factory.mktemp("captured"), EXPERIMENT)


def run(folder: Path, experiment: str) -> Path:
    file = folder / "captured.yaml"
    file.write_text(experiment)
    [path] = run_experiment(load_experiment(file), runs=folder / "runs", quiet=True).path.glob("trials/*")
    return path


def table(trial: Path, name: str) -> pa.Table:
    return pq.read_table(trial / f"{name}.parquet", partitioning=None)


def test_nothing_was_dropped_and_all_is_accounted_for(trial: Path) -> None:
    [capture] = table(trial, "captures").to_pylist()
    assert (capture["host"], capture["device"]) == ("s0", "eth0")
    for lost in ("dropped_by_kernel", "dropped_by_interface", "overwritten", "truncated", "malformed"):
        assert capture[lost] == 0, lost
    packets = table(trial, "packets")
    assert packets.num_rows == capture["decoded"] == capture["captured"] == capture["received"]
    raw = list((trial / "captures" / "s0").iterdir())
    assert (len(raw), sum(path.stat().st_size for path in raw)) == (capture["files"], capture["file_bytes"])


def test_the_payload_captured_is_what_the_worker_sent(trial: Path) -> None:
    scale = 100
    flow = flows_of_packets(table(trial, "packets"))[0]
    [sent] = [row for row in table(trial, "flows").to_pylist() if row["host"] == "s0"]
    # The connection carries a greeting as well, and what was sent again was injected again.
    extra = flow.payload_bytes.sum() - sent["bytes_acked"]
    assert 0 <= extra <= 1000 * scale + sent["retransmitted"] * 5000 * scale


def test_packets_are_on_the_runs_clock(trial: Path) -> None:
    """All payload lies between the start and the end of communication of some iteration."""
    flow = flows_of_packets(table(trial, "packets"))[0]
    its = table(trial, "iterations")
    its = its.filter(pc.equal(its["host"], "s0")).sort_by("iteration")
    greeting = flow.at_ns < its["start_ns"][0].as_py()
    assert greeting.sum() <= 1
    edges = np.ravel(np.column_stack([its["compute_end_ns"].to_numpy(), its["comm_end_ns"].to_numpy()]))
    sent, _ = np.histogram(flow.at_ns[~greeting], edges, weights=flow.payload_bytes[~greeting])
    assert sent[0::2] == pytest.approx(its["sent_bytes"].to_numpy(), rel=0.01)
    assert (sent[1::2] < 0.01 * sent[0::2][:-1]).all()


@pytest.mark.proof
def test_a_sender_is_captured_before_its_nics_queue(tmp_path: Path) -> None:
    """More waits than the link's shaper lets burst, which is all that comes at once behind the queue."""
    trial = run(tmp_path, BESIDE)
    [capture] = table(trial, "captures").to_pylist()
    assert (capture["host"], capture["device"], capture["dropped_by_kernel"]) == ("s2", "tap0", 0)
    packets = table(trial, "packets")
    assert set(packets["direction"].to_pylist()) == {"in", "out"}
    flow = flows_of_packets(packets)[0]
    ahead_bytes = np.cumsum(flow.payload_bytes) - 23.5 / 8 * (flow.at_ns - flow.at_ns[0])
    waiting_bytes = ahead_bytes - np.minimum.accumulate(ahead_bytes)
    assert waiting_bytes.max() > 1.5 * 100 * load_calibration().burst_bytes
