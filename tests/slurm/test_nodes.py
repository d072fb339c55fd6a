# SPDX-License-Identifier: Apache-2.0
"""Sweeps over two nodes of Debian's Slurm: the same trials as on one, a node's death, and nothing left."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.reading.machines import read_machines
from roundabout.store import Run
from tests.slurm.cluster import Cluster, awaited, is_there
from tests.slurm.sweeps import SPREAD, figures

pytestmark = [
    pytest.mark.lab,
    pytest.mark.proof,
    pytest.mark.skipif(not is_there(), reason="needs root and slurm-wlm: make setup-proofs"),
]

NOBODY = 65534
LOADS = "  resized: {whole: {}, half: {resized: {bytes: 0.5}}, quarter: {resized: {bytes: 0.25}}}\n"
SIX = SPREAD.replace("iterations: 4", "iterations: 6") + LOADS
MEASURED = SIX.replace("name: spread", "name: measured").replace(", quarter: {resized: {bytes: 0.25}}", "")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where everybody may write, as on a file system that a cluster shares."""
    path = Path(tempfile.mkdtemp(prefix="roundabout-slurm-"))
    path.chmod(0o777)
    for name, text in {"spread": SIX, "measured": MEASURED}.items():
        (path / f"{name}.yaml").write_text(text)
    yield path
    shutil.rmtree(path)


def swept(
    cluster: Cluster, folder: Path, *words: str, user: int = 0, meanwhile: Callable[[], None] | None = None
) -> str:
    """What a sweep said, whose runs are in a folder of its own."""
    process = cluster.roundabout("run", *words, "--executor", "slurm", "--runs", str(folder), user=user)
    try:
        if meanwhile:
            meanwhile()
        said, _ = process.communicate(timeout=400)
    finally:
        process.kill()
    return f"{said}\nstatus {process.returncode}"


def leaves_nothing(cluster: Cluster) -> None:
    """On the nodes that live."""
    awaited(lambda: not any(map(cluster.processes, cluster.states())))
    assert [place for name in cluster.states() for place in cluster.remembers(name)] == []
    assert sorted(cluster.links()) == ["lo", "v0", "v1"]
    assert "rb_" not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()


def test_two_nodes_equal_one_and_a_dead_node_loses_its_trials_only(folder: Path) -> None:
    runs = {}
    for name, nodes in {"one": 1, "two": 2, "killed": 2}.items():
        with Cluster(folder / name, nodes) as cluster:

            def kill(cluster: Cluster = cluster) -> None:
                awaited(lambda: "n2" in dict(cluster.running()))
                cluster.kill("n2")

            words = (str(folder / "spread.yaml"), "--testbed", "fluid")
            said = swept(cluster, folder / f"runs-{name}", *words, meanwhile=kill if name == "killed" else None)
            assert said.endswith("status 0"), said
            if name != "killed":
                leaves_nothing(cluster)
        runs[name] = Run.open("last", folder / f"runs-{name}")
    assert len(runs["one"].committed()) == 6
    for run in runs.values():
        assert run.committed() == runs["one"].committed()
        assert figures(run) == figures(runs["one"])
        run.check()
    assert read_machines(runs["one"]).trials == {"n1": 6}
    assert read_machines(runs["two"]).trials.keys() == {"n1", "n2"}
    assert read_machines(runs["two"]).differing == ()
    assert sum(read_machines(runs["killed"]).trials.values()) == 6


def test_labs_one_at_a_time_and_a_node_that_dies_amid_a_trial(folder: Path) -> None:
    with Cluster(folder / "cluster", 2) as cluster:
        seen = []

        def attempts(where: str) -> list[Path]:
            return [*(folder / "runs").glob(f"*/*/{where}/*")]

        def kill() -> None:
            awaited(lambda: len(attempts("trials")) >= 1)
            awaited(lambda: len(attempts("partial")) >= 1)
            ((node, _),) = cluster.running()
            seen.append(node)
            cluster.kill(node)
            awaited(lambda: "down" in cluster.states()[node])
            cluster.add(node)

        said = swept(cluster, folder / "runs", str(folder / "measured.yaml"), meanwhile=kill)
        assert said.endswith("status 0"), said
        leaves_nothing(cluster)
    run = Run.open("last", folder / "runs")
    run.check()
    assert {trial["valid"] for trial in run.trials()} == {True}, [trial["reason"] for trial in run.trials()]
    assert len(run.committed()) == 4
    assert len(run.interrupted_attempts()) == 1, "what the dead node was at"
    found = read_machines(run)
    assert found.trials.keys() <= {"n1", "n2"}
    spans = sorted((trial["started_utc"], trial["ended_utc"]) for trial in run.trials())
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), "one lab at a time"
    assert len(found.trials) == 1 or found.reference is not None
    print(seen, found)


def test_users_other_than_root_can_run_models_but_no_lab(folder: Path) -> None:
    with Cluster(folder / "cluster", 1) as cluster:
        words = ("--only", "alone", "--set", "iterations=2")
        said = swept(cluster, folder / "runs", str(folder / "spread.yaml"), "--testbed", "fluid", *words, user=NOBODY)
        assert said.endswith("status 0"), said
        assert Run.open("last", folder / "runs").path.stat().st_uid == NOBODY
        said = swept(cluster, folder / "labs", str(folder / "measured.yaml"), *words, user=NOBODY)
        assert "no plan was made: jobs of Slurm failed" in said
        assert "n1: cannot write /run/roundabout" in said, said
        assert "permission denied; run as root" in said
        assert said.endswith("status 1")
        assert not Run.all(folder / "labs")


def test_an_interrupt_leaves_no_slurm_job_on_real_nodes(folder: Path) -> None:
    with Cluster(folder / "cluster", 2) as cluster:
        words = ("run", str(folder / "spread.yaml"), "--testbed", "fluid", "--executor", "slurm:main")
        process = cluster.roundabout(*words, "--runs", str(folder / "r"))
        awaited(lambda: len(cluster.running()) > 1)
        process.send_signal(2)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert cluster.running() == []
        awaited(lambda: [cluster.processes(name) for name in cluster.nodes] == [[], []])
        done = Run.open("last", folder / "r").committed()
        resumed = cluster.roundabout("resume", "--executor", "slurm", "--runs", str(folder / "r"))
        said, _ = resumed.communicate(timeout=200)
        assert resumed.returncode == 0, said
        run = Run.open("last", folder / "r")
        assert done < run.committed()
        assert len(run.committed()) == 6
