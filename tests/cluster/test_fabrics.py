# SPDX-License-Identifier: Apache-2.0
"""Traces on fabrics with several paths and several NICs a host."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.simulator import Cluster, simulate_trace
from roundabout.models.cluster.state import Request, State
from roundabout.models.cluster.timeline import Timeline
from roundabout.models.fluid import residual_of_schedules
from roundabout.models.schedulers import make_scheduler
from roundabout.plan import with_simulated_jobs
from roundabout.plan.clusters import check_cluster_trial
from roundabout.plan.routes import list_routes
from roundabout.spec import Topology, load_experiment
from roundabout.spec.fabrics import FABRICS, write_topology
from roundabout.spec.job import ResolvedJob
from roundabout.spec.routing import Routing
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.fluid.engine_trial import compute_trial
from tests.schedulers.clusters import KNOWN, employed, trace
from tests.several_paths.fabrics import rails
from tests.spec.cluster_traces.trace_files import EXAMPLES, TABLES

pytestmark = pytest.mark.unit

EXPERIMENT = """\
schema: 1
name: philly
about: Jobs of a trace in Philly's format
topology: fabric
line_rate_gbps: 50
routing: {routing}
transport: {{name: dcqcn, T_us: 125}}
cluster:
  scheduler: fifo
  trace: {{kind: {kind}, file: {file}, models: [VGG16], workers: {{least: 1, most: 64}}, compression: 60}}
  {more}
factors: {{variant: {{base: {{}}}}}}
"""
MINUTES = {"a": (0, 10, 12), "b": (0, 20, 8), "c": (1, 5, 1), "d": (2, 10, 10)}
"""Minutes of submission and of running, and the number of GPUs, of each job."""


def spec_on(folder: Path, fabric: str, servers: int, routing: str, more: str = "") -> TrialSpec:
    """Return the trial of a trace in Philly's format on a fabric."""
    jobs = [
        {
            "jobid": name,
            "submitted_time": f"2017-10-02 08:{at:02}:00",
            "attempts": [
                {
                    "start_time": f"2017-10-02 09:{at:02}:00",
                    "end_time": f"2017-10-02 09:{at + ran:02}:00",
                    "detail": [{"ip": "m1", "gpus": [f"gpu{number}" for number in range(gpus)]}],
                }
            ],
        }
        for name, (at, ran, gpus) in MINUTES.items()
    ]
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    return spec_of(folder, fabric, servers, kind="philly", file="cluster_job_log", routing=routing, more=more)


def spec_of(folder: Path, fabric: str, servers: int, **fields: str) -> TrialSpec:
    """Return the trial of an experiment with these fields on a fabric, whose trace is in the folder."""
    (folder / "topologies").mkdir()
    (folder / "topologies/fabric.yaml").write_text(write_topology(FABRICS[fabric](servers, 1).topology("fabric")))
    path = folder / "philly.yaml"
    path.write_text(EXPERIMENT.format(**fields))
    return load_experiment(path).cells[0].spec


@pytest.mark.parametrize(
    ("fabric", "servers", "routing"),
    [
        ("leaf-spine", 32, "{name: ecmp}"),
        ("leaf-spine", 32, "{name: static}"),
        ("fat-tree", 54, "{name: ecmp}"),
        ("rail-optimized", 4, "{name: rail}"),
        ("rail-optimized", 4, "{name: rail, pxn: true}"),
    ],
)
def test_a_trace_is_played_on_the_routes_of_a_fabric(tmp_path, fabric, servers, routing):
    spec = spec_on(tmp_path, fabric, servers, routing)
    check_cluster_trial(spec, 1)
    played, timeline = with_simulated_jobs(spec, 1)
    assert {job.name[0]: (job.arrived_s, job.ended_s is not None) for job in timeline.histories} == {
        "a": (0.0, True),
        "b": (0.0, True),
        "c": (1.0, True),
        "d": (2.0, True),
    }
    assert {name[0] for name in played.jobs} == {"a", "b", "d"}  # c has one worker, which sends nothing
    assert {route.user for route in list_routes(played)} <= set(played.jobs)
    computed = compute_trial(played, residual_of_schedules(played, {}))
    simulated = {
        allocation.name: allocation.iterations for allocation in timeline.allocations if allocation.name in played.jobs
    }
    assert {name: each.shape[1] for name, each in computed.iterations.items()} == simulated


@pytest.mark.parametrize(
    ("routing", "more"),
    [
        ("{name: static}", "priorities: crux"),
        ("{name: ecmp}", "paths: crux"),
        ("{name: ecmp}", "paths: crux\n  priorities: crux"),
        ("{name: ecmp}", "paths: foresight"),
    ],
)
def test_priorities_and_paths_of_a_simulation_are_those_of_its_trial(tmp_path, routing, more):
    spec = spec_on(tmp_path, "leaf-spine", 32, routing, more)
    check_cluster_trial(spec, 1)
    played, timeline = with_simulated_jobs(spec, 1)
    assert all((job.priority is not None) == ("priorities" in more) for job in played.jobs.values())
    assert all(bool(job.source_ports) == ("paths" in more) for job in played.jobs.values())
    computed = compute_trial(played, residual_of_schedules(played, {}))
    simulated = {
        allocation.name: allocation.iterations for allocation in timeline.allocations if allocation.name in played.jobs
    }
    assert {name: each.shape[1] for name, each in computed.iterations.items()} == simulated
    assert TrialSpec.model_validate(json.loads(played.model_dump_json())) == played


@pytest.mark.parametrize("kind", TABLES)
def test_each_published_format_is_played_on_a_fabric(tmp_path, kind):
    folder, file = kind.partition(" ")[0], TABLES[kind][0].file
    shutil.copytree(EXAMPLES / folder, tmp_path, dirs_exist_ok=True)
    spec = spec_of(tmp_path, "rail-optimized", 8, kind=folder, file=file, routing="{name: rail}", more="")
    played, timeline = with_simulated_jobs(spec, 1)
    assert played.jobs
    assert all(life.ended_s is not None for life in timeline.histories)


def test_jobs_are_compressed_in_time(tmp_path):
    spec = spec_on(tmp_path, "leaf-spine", 32, "{name: ecmp}")
    _, timeline = with_simulated_jobs(spec, 1)
    for life in timeline.histories:
        assert life.dedicated_s == pytest.approx(MINUTES[life.name[0]][1], abs=0.5)  # seconds in place of minutes


@pytest.mark.parametrize("more", ["cassini: {}", "migrate: 1", "priorities: crux"])
def test_choices_by_links_are_refused_where_ports_decide_routes(tmp_path, more):
    spec = spec_on(tmp_path, "leaf-spine", 32, "{name: ecmp}", more)
    with pytest.raises(UsageError, match=rf"topology fabric: found routing ecmp with {more.partition(':')[0]}"):
        check_cluster_trial(spec, 1)


@pytest.mark.parametrize(
    ("fabric", "servers", "routing", "found"),
    [("leaf-spine", 32, "{name: static}", "static"), ("rail-optimized", 4, "{name: rail}", "rail")],
)
def test_paths_are_refused_where_ports_do_not_choose_them(tmp_path, fabric, servers, routing, found):
    spec = spec_on(tmp_path, fabric, servers, routing, "paths: crux")
    with pytest.raises(UsageError, match=f"found routing {found} with paths, allowed with it is ecmp"):
        check_cluster_trial(spec, 1)


def timeline_of(topology: Topology, requests: list[Request], name: str) -> Timeline:
    resolve_job = partial(employed, {each.name: each for each in requests})
    scheduler = make_scheduler(name, KNOWN)

    def decide(state: State, seed: int) -> PlacementDecision:
        return PlacementDecision(scheduler.decide(state, seed)[0], {}, ())

    return simulate_trace(requests, Cluster(topology, scheduler, KNOWN, decide, resolve_job, 1.0, seed=1))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["fifo", "random", "themis"]))
def test_no_two_workers_have_one_gpu_at_a_time(seed, name):
    topology = rails(servers=3, nics=4)
    requests = [replace(each, iterations=20) for each in trace(seed, 6, every_s=4.0, most=6)]
    allocations = timeline_of(topology, requests, name).allocations
    assert allocations
    for one in allocations:
        own = set(zip(one.workers, one.gpus, strict=True))
        assert len(own) == len(one.workers)
        assert all(gpu < topology.gpus_per_host for gpu in one.gpus)
        for other in allocations:
            if other is not one and one.begins_s < other.ends_s and other.begins_s < one.ends_s:
                assert own.isdisjoint(zip(other.workers, other.gpus, strict=True))


def test_a_worker_sends_by_the_nic_of_its_gpu():
    topology = rails(servers=2, nics=4, pxn=True)
    job = ResolvedJob(
        profile=KNOWN.profile(Request("j", "vgg", 8, 2, 1, 0.0), 2),
        workers=("s0", "s1"),
        transport=Transport(name="dcqcn"),
        gpus=(1, 3),
    )
    assert job.flow("j", 0, 1, 0, topology).nics == (3, 3)
    plain = topology.with_routing(Routing(name="rail"))
    assert job.flow("j", 0, 1, 0, plain).nics == (1, 3)
    assert "gpus" not in job.model_copy(update={"gpus": ()}).model_dump(mode="json")


def test_gpus_are_numbered_from_the_lowest_free_one():
    ground = host_tree_of(rails(servers=2, nics=4))
    assert ground.number_gpus(("s0", "s0", "s1"), {"s0": {0, 2}}) == (1, 3, 0)
