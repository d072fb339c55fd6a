# SPDX-License-Identifier: Apache-2.0
"""Jobs that train, started through Debian's Slurm on a lab's hosts that pose as a rack; and whatever ends them."""

import json
import os
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.data import filter_rows
from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.slurm_allocation import AllocationError
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.runner.run import Runner
from roundabout.spec import load_experiment, load_topology
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.rack.provider import RackProvider
from tests.observers import Reasons, Silent
from tests.rack.lab_hosts.rack_runs import driven, inventory_of
from tests.slurm.cluster import awaited, is_there
from tests.slurm.hosts import Nodes

pytestmark = [
    pytest.mark.lab,
    pytest.mark.proof,
    pytest.mark.skipif(not is_there(), reason="needs root and slurm-wlm: make setup-proofs"),
]

PYTHON = os.environ.get("TRAINING_PYTHON", "/usr/bin/python3")
SOON_S = 10
FIELDS = {"line_rate_gbps": 50, "payload_rate_gbps": 43}
PORTS = {
    "tor0": {"s0": "Ethernet0", "s1": "Ethernet4", "L1": "Ethernet48"},
    "tor1": {"s2": "Ethernet0", "s3": "Ethernet4", "L1": "Ethernet48"},
}
EXPERIMENT = {
    "name": "scheduled",
    "about": "A job that really trains, started through Slurm and directly",
    "topology": "dumbbell-2x2",
    "profile": "ddp-lab",
    "jobs": {"j1": {"workers": ["s0", "s2"], "trainer": {"name": "ddp", "python": PYTHON, "launch": "slurm"}}},
    "iterations": 40,
    "transport": {"name": "dcqcn"},
}
BESIDE = {"factors": {"variant": {"slurm": {}, "direct": {"jobs": {"j1": {"trainer": {"launch": "direct"}}}}}}}
ENDLESS = {"iterations": 5000}


# A test machine may be loaded, and servers' TCP may probe for lost tails: what spoils figures must not fail tests.
NOISE = ("woke up", "sent again", "took")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    name, folder = process_name("test-nodes"), Path(tempfile.mkdtemp(prefix="roundabout-nodes-", dir="/var/tmp"))
    folder.chmod(0o755)
    lab = Lab.create(load_topology("dumbbell-2x2"), name)
    try:
        with Nodes(lab, folder) as found:
            yield found
    finally:
        Lab.remove(name)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def inventory(nodes: Nodes) -> Path:
    lab, path = nodes.lab, nodes.folder / "inventory"
    path.write_text(inventory_of(lab, FIELDS, PORTS))
    rack = RackProvider(path)
    rack.provision(rack.create_hosts(load_topology("dumbbell-2x2"), "provisioned"))
    rack.undo({"kind": "testbed", "name": "provisioned"})
    return path


@pytest.fixture(autouse=True)
def deployed(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are on the hosts already."""
    monkeypatch.setattr("roundabout.testbeds.rack.provider.run_playbook", lambda *_: None)


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(json.dumps({**EXPERIMENT, **changes}))
    return path


def run(inventory: Path, folder: Path, observer: Any, **changes: Any) -> Run:
    experiment = load_experiment(written(folder, **changes))
    runner = Runner(RackProvider(inventory), observer, undo, folder / "state", folder / "journals/runs")
    return runner.start(experiment, "experiment", folder / "runs")


def trains(folder: Path) -> bool:
    """Whether a trial's jobs have begun."""
    return any('"start"' in path.read_text() for path in folder.glob("runs/*/*/partial/*/events.jsonl"))


def spoilt(trial: dict[str, Any]) -> bool:
    """Whether by more than noise."""
    reasons = trial["reason"].split("; ") if trial["reason"] else []
    return not all(any(word in reason for word in NOISE) for reason in reasons)


def left(nodes: Nodes) -> list[str]:
    return [*nodes.queue, *(set(nodes.processes()) - {"sshd", "squeue"})]


def soon(nodes: Nodes) -> float:
    """In how many seconds nothing is left."""
    began_s = time.monotonic()
    while found := left(nodes):
        assert time.monotonic() - began_s < SOON_S, found
        time.sleep(0.1)
    return time.monotonic() - began_s


def meanwhile(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_through_slurm_a_job_takes_as_long_as_directly(nodes: Nodes, inventory: Path, tmp_path: Path) -> None:
    done = run(inventory, tmp_path, Silent(), repetitions=2, **BESIDE)
    assert [trial["reason"] for trial in done.trials() if spoilt(trial)] == []
    rows = done.table("iterations", valid_only=False)
    found = {
        variant: statistics.median(filter_rows(rows, variant=variant)["iteration_ms"].to_pylist())
        for variant in ("slurm", "direct")
    }
    print(found)
    assert found["slurm"] == pytest.approx(found["direct"], rel=0.05)
    assert left(nodes) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ending_a_run_ends_its_allocation(nodes: Nodes, inventory: Path, tmp_path: Path, how: signal.Signals) -> None:
    written(tmp_path, **ENDLESS)
    with driven("run", inventory, tmp_path) as process:
        awaited(lambda: trains(tmp_path))
        assert len(nodes.queue) == 1
        assert "python3" in nodes.processes()
        process.send_signal(how)
        print(how.name, soon(nodes))
        process.communicate()
    with driven("clean", inventory, tmp_path) as process:  # a killed run leaves what it loaded
        _, stderr = process.communicate()
    assert process.returncode == 0, stderr


def test_nodes_that_are_busy_are_one_message(nodes: Nodes, inventory: Path, tmp_path: Path) -> None:
    number = nodes.said("sbatch", "--parsable", "--nodelist=s2", "--job-name=mine", "--wrap=sleep 600").strip()
    try:
        with pytest.raises(AllocationError, match="did not give the nodes s0,s2 within 20 s") as error:
            run(inventory, tmp_path, Silent())
    finally:
        nodes.said("scancel", number)
    assert f"s2 has job {number} of root (mine, RUNNING)" in error.value.message
    soon(nodes)


def test_a_cancelled_allocation_costs_the_attempt(nodes: Nodes, inventory: Path, tmp_path: Path) -> None:
    def cancel() -> None:
        awaited(lambda: trains(tmp_path))
        nodes.said("scancel", *nodes.queue)

    observer, thread = Reasons(), meanwhile(cancel)
    done = run(inventory, tmp_path, observer)
    thread.join()
    assert any("has been revoked" in reason for reason in observer.reasons), observer.reasons
    (trial,) = done.trials()
    assert not spoilt(trial), trial["reason"]
    assert left(nodes) == []


def test_a_host_that_is_no_node_is_named_before_any_trial(nodes: Nodes, inventory: Path, tmp_path: Path) -> None:
    nodes.said("scontrol", "delete", "NodeName=s2")
    with pytest.raises(RoundaboutError, match="^s2: sh -c: Slurm does not list this host"):
        run(inventory, tmp_path, Silent())
    assert list(tmp_path.glob("runs/*/trials*")) == []
