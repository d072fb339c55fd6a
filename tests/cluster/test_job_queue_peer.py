# SPDX-License-Identifier: Apache-2.0
"""Queues of jobs beside MonkeyTree's simulator (benchmarks/job_queue.py).

Outside witness: its own output at revision 536f589b, stored with each scene.
"""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.job_queue import compare, read_scenes, run_peer, without_pipelines

pytestmark = pytest.mark.unit

SCENES = {(scene.paths, scene.load): scene for scene in read_scenes()}
COMPARABLE = [key for key in SCENES if key[0] in ("ecmp", "crux")]
PEER = """#!{python}
import json, sys
trace, state = (open(sys.argv[place]).read() for place in (1, 11))
open({seen!r}, "w").write(json.dumps([trace, state, sys.argv[2]]))
for job in range({jobs}):
    print(f"9 JobComplete {{job}} submit=0 schedule=1000000 complete=3500000 wait=0us")
"""


@pytest.mark.parametrize("key", COMPARABLE)
def test_jobs_without_pipelines_run_as_long_as_in_monkeytrees_simulator(key):
    """Rounds of all-to-alls end together here, and worker by worker there: 0.5 % at most."""
    found = compare(without_pipelines(SCENES[key]))
    assert found["median_apart"] < 1e-6
    assert found["most_apart"] < 5e-3
    assert found["start_apart_s"] < 1e-3
    assert found["mean"] == pytest.approx(found["peer_mean"], rel=1e-4)


@pytest.mark.parametrize("key", [("ecmp", 0.7), ("ecmp", 1.0), ("crux", 0.7), ("crux", 0.9)])
def test_jobs_beside_pipelines_run_as_long_as_in_monkeytrees_simulator(key):
    """In the other scenes a pipeline is placed over several leaves, where its rings have another stride there."""
    found = compare(SCENES[key])
    assert found["most_apart"] < 6e-3
    assert found["mean"] == pytest.approx(found["peer_mean"], rel=3e-4)


def peer(tmp_path: Path, jobs: int) -> str:
    program = tmp_path / "golden_spine"
    program.write_text(PEER.format(python=sys.executable, seen=str(tmp_path / "seen"), jobs=jobs))
    program.chmod(0o755)
    return str(program)


def test_the_peer_gets_the_placement_and_the_arrivals(tmp_path):
    scene = SCENES["crux", 0.9]
    ran = run_peer(peer(tmp_path, len(scene.jobs)), str(tmp_path), scene)
    assert ran["ran_s"] == [(1.0, 3.5)] * len(scene.jobs)
    trace, state, system = json.loads((tmp_path / "seen").read_text())
    placed = [job for job in scene.jobs if job.servers]
    lines = state.split("\n\nPlacement\n")
    first = placed[0]
    assert lines[0].splitlines()[:2] == [f"{len(placed)}", f"0: {first.gpus} {first.peer_type} {first.iterations}"]
    assert lines[1].split("\n").count(f"{8 * first.servers[0]}: 0") == 1
    assert len(lines[1].split()) == 2 * sum(job.gpus for job in placed)
    assert trace.split("\n")[0] == f"{len(scene.jobs) - len(placed)}"
    assert system == "crux"


def test_a_peer_that_leaves_jobs_out_is_an_error(tmp_path):
    scene = SCENES["crux", 0.9]
    with pytest.raises(RuntimeError, match=f"3 of {len(scene.jobs)} jobs ended"):
        run_peer(peer(tmp_path, 3), str(tmp_path), scene)
