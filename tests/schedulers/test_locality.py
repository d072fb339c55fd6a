# SPDX-License-Identifier: Apache-2.0
"""Leftover GPUs that are handed out, and schedulers that see a network only coarsely."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.cluster.locality import view_by_locality
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.schedulers import make_scheduler
from tests.schedulers.cluster_states import states
from tests.schedulers.clusters import KNOWN, cluster

pytestmark = pytest.mark.unit

TREE = cluster(6, 4)
GROUND = host_tree_of(TREE)
WHOLE = {"leftover": "random", "locality": "rack"}


@settings(deadline=None, max_examples=15)
@given(states(), st.integers(0, 3), st.sampled_from([WHOLE, {"leftover": "random"}, {"locality": "rack"}]))
def test_themis_options_give_each_gpu_once_and_no_job_more_than_it_requests(state, seed, options):
    scheduler, ground = make_scheduler("themis", KNOWN, **options), host_tree_of(state.topology)
    offered = scheduler.decide(state, seed)
    assert scheduler.decide(state, seed) == offered
    for placements in offered:
        taken = Counter(host for placement in placements.values() for host in placement)
        assert all(count <= state.topology.gpus_per_host for count in taken.values())
        got = {job.request.name: len(placements.get(job.request.name, ())) for job in state.jobs}
        assert all(got[job.request.name] <= job.request.workers for job in state.jobs)
        if options.get("leftover") == "random":
            assert taken.total() == min(ground.gpus, sum(job.request.workers for job in state.jobs))
        for job in state.jobs:
            if job.lease_s and job.lease_s > state.now_s:
                assert not Counter(job.placement) - Counter(placements[job.request.name])


@settings(deadline=None, max_examples=15)
@given(states(), st.integers(0, 3))
def test_blind_pollux_gives_each_gpu_once_and_as_many_as_before(state, seed):
    blind, offered = (
        make_scheduler("pollux", KNOWN, **each).decide(state, seed) for each in ({"locality": "host"}, {})
    )
    for placements in blind:
        taken = Counter(host for placement in placements.values() for host in placement)
        assert all(count <= state.topology.gpus_per_host for count in taken.values())
        if state.topology.gpus_per_host == 1:
            assert {job: len(each) for job, each in placements.items()} == {
                job: len(each) for job, each in offered[0].items()
            }


def test_leftover_gpus_go_to_jobs_that_do_not_bid_before_those_that_do():
    """The least fairly treated job bids. A fifth worker would be across racks, and gains nothing."""

    def running(name, rack, workers, arrived_s):
        hosts = tuple(f"s{4 * rack + number}" for number in range(4))
        return Job(Request(name, "vgg", 8, workers, 500, arrived_s), 0.0, hosts, 0.0, 1500.0)

    fair = [running(f"fair{rack}", rack, 8, 990.0) for rack in range(4)]
    state = State(1000.0, TREE, (*fair, running("unfair", 4, 5, 0.0)))
    assert sum(map(len, make_scheduler("themis", KNOWN).decide(state, 1)[0].values())) == 20
    for seed in range(5):
        handed_out = make_scheduler("themis", KNOWN, leftover="random").decide(state, seed)[0]
        assert sum(map(len, handed_out.values())) == GROUND.gpus
        assert len(handed_out["unfair"]) == 4


@settings(deadline=None, max_examples=25)
@given(st.sets(st.sampled_from(GROUND.hosts)), st.integers(1, 8), st.integers(0, 99))
def test_a_rack_is_taken_where_one_has_room_and_any_gpus_elsewhere(hosts, workers, seed):
    free = GROUND.free([hosts])
    view = view_by_locality(GROUND, "rack", random.Random(seed))
    racks = Counter(GROUND.racks[host] for host in GROUND.hosts if host not in hosts)
    if workers > free.sum():
        return
    found = view.pack(free.copy(), workers)
    assert len(found) == workers and not {*found} & hosts
    if workers <= max(racks.values()):
        assert found == GROUND.pack(free.copy(), workers)
    again = view_by_locality(GROUND, "rack", random.Random(seed)).pack(free.copy(), workers)
    assert again == found


def test_all_placements_across_racks_are_alike_to_themis_and_all_across_hosts_to_pollux():
    free = GROUND.free([("s0", "s1")])
    near, rack, host = (
        {view_by_locality(GROUND, locality, random.Random(seed)).pack(free.copy(), 6) for seed in range(20)}
        for locality in ("packed", "rack", "host")
    )
    assert (len(near), len(rack), len(host)) == (1, 20, 20)
    assert {len({GROUND.racks[each] for each in found}) for found in near} == {2}
    assert max(len({GROUND.racks[each] for each in found}) for found in rack) > 3
    few = [view_by_locality(GROUND, "host", random.Random(seed)).pack(free.copy(), 2) for seed in range(20)]
    assert any(GROUND.locality(found) == 2 for found in few)


def test_a_job_grows_in_its_rack_or_anywhere():
    view = view_by_locality(GROUND, "rack", random.Random(1))
    free = GROUND.free([("s0",)])
    assert view.grow(free.copy(), ("s0",), 4) == ("s0", "s1", "s2", "s3")
    drawn = {view.grow(free.copy(), ("s0",), 5) for _ in range(20)}
    assert len(drawn) > 10 and all("s0" in found and len({*found}) == 5 for found in drawn)
    assert view.grow(free.copy(), ("s0",), 1) == ("s0",)


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("themis", {"leftover": "all"}, "found leftover 'all', expected one of: free, random"),
        ("themis", {"locality": "pod"}, "found locality 'pod', expected one of: packed, rack, host"),
        ("pollux", {"locality": "pod"}, "found locality 'pod'"),
    ],
)
def test_an_unknown_option_is_refused(name, options, found):
    with pytest.raises(UsageError, match=found):
        make_scheduler(name, KNOWN, **options)
