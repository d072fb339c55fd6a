# SPDX-License-Identifier: Apache-2.0
"""Experiments of the jobs of execution traces, as `roundabout new --from` writes them."""

from pathlib import Path

import pytest

from analysis.records.execution_profile import make_execution_profile
from analysis.records.execution_schedule import Rates
from roundabout.cli.main import main
from roundabout.spec import load_experiment
from tests.records.record_writers import bytes_field, collective_node, et
from tests.records.traced_jobs import JOBS, RANKS, TFLOPS, write_traces

pytestmark = pytest.mark.unit

PAYLOAD_GBPS = 391
"""Payload rate of the fabrics' links: 400 Gbit/s without headers."""


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """Change to a folder with the traces of both jobs in `traces`."""
    monkeypatch.chdir(tmp_path)
    folder = Path("traces")
    folder.mkdir()
    return {job: write_traces(folder, job) for job in JOBS}


def test_each_prefix_is_a_job_with_the_profile_of_its_traces(traces):
    assert main(["new", "mine", "--from", "traces", "--tflops", str(TFLOPS)]) == 0
    jobs = load_experiment(Path("mine.yaml")).cells[0].spec.jobs
    for job, paths in traces.items():
        assert jobs[job].profile == make_execution_profile(paths, job, Rates(PAYLOAD_GBPS, TFLOPS)).profile
    hosts = [host for job in jobs.values() for host in job.workers]
    assert len(set(hosts)) == RANKS * len(JOBS)


@pytest.mark.parametrize("testbed", ["fluid", "packets"])
@pytest.mark.usefixtures("traces")
def test_the_experiment_runs(testbed):
    assert main(["new", "mine", "--from", "traces", "--tflops", str(TFLOPS)]) == 0
    assert main(["run", "mine.yaml", "--testbed", testbed, "--quick"]) == 0


@pytest.mark.usefixtures("traces")
def test_a_trace_stands_for_all_ranks_of_its_job(capsys):
    assert main(["new", "mine", "--from", "traces/data-parallel.2.et"]) == 0
    assert set(load_experiment(Path("mine.yaml")).cells[0].spec.jobs) == {"data-parallel"}
    assert "data-parallel: A trace is taken for one iteration, which repeats." in capsys.readouterr().out


@pytest.mark.usefixtures("traces")
def test_a_file_of_groups_serves_all_jobs_of_its_folder():
    for rank in range(RANKS):
        node = collective_node(1, 10**6, pg_name="even" if rank % 2 == 0 else "odd")
        Path(f"traces/pairs.{rank}.et").write_bytes(et([bytes_field(1, b"0.0.4"), node]))
    Path("traces/groups.json").write_text('{"even": [0, 2], "odd": [1, 3]}')
    assert main(["new", "mine", "--from", "traces", "--tflops", str(TFLOPS)]) == 0
    [phase] = load_experiment(Path("mine.yaml")).profiles["pairs"].phases
    assert phase.groups == ((0, 2), (1, 3))


@pytest.mark.parametrize("servers", [None, 24])
@pytest.mark.usefixtures("traces")
def test_ranks_fill_a_whole_number_of_leaves(servers):
    for rank in range(19):
        Path(f"traces/wide.{rank}.et").write_bytes(et([bytes_field(1, b"0.0.4"), collective_node(1, 10**6)]))
    options = ["--servers", str(servers)] if servers else []
    assert main(["new", "mine", "--from", "traces/wide.0.et", *options, "--oversubscription", "4"]) == 0
    spec = load_experiment(Path("mine.yaml")).cells[0].spec
    assert len(spec.topology.hosts) == 24
    assert spec.jobs["wide"].workers[:4] == ("s0", "s8", "s16", "s1")
    assert sum(switch.startswith("spine") for switch in spec.topology.switches) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "traces"], "give the GPU's rate: --tflops 400"),
        (["--from", "traces", "--servers", "4"], "--servers: found 4, expected 8 at least"),
        (["--from", "traces", "--topology", "tree.topo"], "--topology: found tree.topo, expected it"),
        (["--from", "."], "--from: found no traces in ."),
        (["--from", "leaf-spine", "--tflops", "1"], "--tflops: found 1.0, expected it beside execution traces"),
        (["--from", "odd/a b.0.et"], "found the prefix 'a b', expected a job's name"),
    ],
)
@pytest.mark.usefixtures("traces")
def test_new_refuses_what_it_cannot_play(arguments, message, capsys):
    Path("odd").mkdir()
    Path("odd/a b.0.et").touch()
    assert main(["new", "mine", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("mine.yaml").exists()
