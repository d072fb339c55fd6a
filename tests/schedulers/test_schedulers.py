# SPDX-License-Identifier: Apache-2.0
"""What every scheduler holds to, and what each is for."""

import statistics
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.cluster.errors import SchedulingError
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.schedulers import make_scheduler, scheduler_names
from roundabout.models.schedulers.pollux import goodput
from tests.schedulers.cluster_states import CLUSTERS, states
from tests.schedulers.clusters import KNOWN, MODELS, cluster, simulate, trace

pytestmark = pytest.mark.unit

SHARED = ("fifo", "pollux", "random", "themis")


@settings(deadline=None, max_examples=30)
@given(states(), st.integers(0, 3))
@pytest.mark.parametrize("name", SHARED)
def test_gpus_are_given_once_and_none_is_free_while_someone_who_fits_waits(name, state, seed):
    ground, scheduler = host_tree_of(state.topology), make_scheduler(name, KNOWN)
    offered = scheduler.decide(state, seed)
    assert 1 <= len(offered) <= 10
    assert scheduler.decide(state, seed) == offered  # and keeps nothing
    assert scheduler.decide(replace(state, candidates=1), seed) == offered[:1]
    for placements in offered:
        taken = Counter(host for placement in placements.values() for host in placement)
        assert all(count <= state.topology.gpus_per_host for count in taken.values())
        free = ground.gpus - taken.total()
        for job in state.jobs:
            got = len(placements.get(job.request.name, ()))
            assert got <= job.request.workers
            assert got or free < (job.request.workers if name in ("fifo", "random") else 1)


@settings(deadline=None, max_examples=30)
@given(states())
def test_a_lease_is_kept_in_all_candidates(state):
    for placements in make_scheduler("themis", KNOWN).decide(state, 1):
        for job in state.jobs:
            if job.lease_s and job.lease_s > state.now_s:
                assert not Counter(job.placement) - Counter(placements[job.request.name])


@settings(deadline=None, max_examples=30)
@given(states())
@pytest.mark.parametrize("name", ["pollux", "themis"])
def test_candidates_give_each_job_as_much_as_near(name, state):
    ground, (first, *others) = host_tree_of(state.topology), make_scheduler(name, KNOWN).decide(state, 1)
    for other in others:
        assert {job: len(each) for job, each in other.items()} == {job: len(each) for job, each in first.items()}
        if name == "themis":
            assert all(ground.locality(other[job]) <= ground.locality(each) for job, each in first.items())


def test_candidates_differ_widely_where_a_cluster_is_empty():
    requests = (Request(f"j{place}", "vgg", 8, 6, 500, 0.0) for place in range(4))
    state = State(0.0, cluster(8, 3), tuple(map(Job, requests)))
    offered = make_scheduler("themis", KNOWN).decide(state, 1)
    assert len(offered) == 10
    assert len({frozenset(placements["j0"]) for placements in offered}) > 5


def test_a_lease_lasts_ten_minutes_and_is_not_renewed_before_its_end():
    themis, request = make_scheduler("themis", KNOWN), Request("j", "vgg", 8, 2, 500, 0.0)
    state = State(100.0, CLUSTERS[0], (Job(request),))
    assert themis.lease_s(state, state.jobs[0]) == 700
    assert themis.lease_s(state, Job(request, placement=("s0", "s1"), lease_s=650.0)) == 650
    assert themis.next_s(state) == 600


def test_themis_gives_free_gpus_to_the_least_fairly_treated_job():
    requests = [Request(name, "vgg", 8, 12, 500, arrives) for name, arrives in (("late", 900.0), ("early", 0.0))]
    running = Job(Request("runs", "vgg", 8, 11, 500, 0.0), 0.0, tuple(f"s{place}" for place in range(11)), 0.0, 1200.0)
    state = State(1000.0, cluster(4, 3), (running, *map(Job, requests)))
    assert make_scheduler("themis", KNOWN).decide(state, 1)[0].keys() == {"runs", "early"}


def unfairness(name, topology, requests):
    ended = simulate(make_scheduler(name, KNOWN), topology, requests)
    return max(
        (ended[each.name] - each.arrives_s) / KNOWN.alone_s(each, each.iterations, each.workers) for each in requests
    )


@pytest.mark.parametrize("traces", [15, pytest.param(100, marks=pytest.mark.proof)])
def test_themis_is_fairer_than_random_in_the_median_of_traces(traces):
    """By the largest time from arrival to end over that alone; docs/results/schedulers.md lists where not."""
    topology, ratios = cluster(4, 3), []
    for seed in range(traces):
        requests = trace(seed, 12, 40.0)
        ratios.append(unfairness("themis", topology, requests) / unfairness("random", topology, requests))
    assert statistics.median(ratios) < 1


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(sorted(MODELS)), st.integers(1, 64))
def test_pollux_has_less_of_each_worker_the_more_there_are(model, batch):
    request = Request("j", model, batch, 12, 500, 0.0)
    of_each = [goodput(KNOWN, request, workers) / workers for workers in range(1, 13)]
    assert of_each == sorted(of_each, reverse=True)


def test_pollux_goodput_is_throughput_times_batch_efficiency():
    """By hand, bert: 60 ms of computing, 2(k-1)/k times 440 MB at 38.84 Gbit/s, phi of 1000 and 8 a worker."""
    request, found = Request("j", "bert", 8, 12, 500, 0.0), []
    for workers in (1, 2, 4, 8):
        iteration_s = 0.060 + 2 * (workers - 1) / workers * 440e6 * 8 / 38.84e9
        found.append(8 * workers / iteration_s * 1008 / (1000 + 8 * workers))
    assert [goodput(KNOWN, request, workers) for workers in (1, 2, 4, 8)] == pytest.approx(found, rel=1e-6)


def test_pollux_moves_no_young_job_and_an_old_one_that_gains():
    topology = cluster(4, 3)
    job = Job(Request("j", "resnet", 8, 12, 1000, 0.0), 0.0, ("s0", "s1"), 0.0)
    young, old = (State(now_s, topology, (job,)) for now_s in (5.0, 3000.0))
    pollux = make_scheduler("pollux", KNOWN)
    assert pollux.decide(young, 1) == [{"j": ("s0", "s1")}]
    assert len(pollux.decide(old, 1)[0]["j"]) > 2
    moved_often = replace(old, jobs=(replace(job, moves=99),))
    assert pollux.decide(moved_often, 1) == [{"j": ("s0", "s1")}]


@settings(deadline=None, max_examples=30)
@given(states())
def test_pollux_puts_one_job_at_most_on_a_host_that_is_spread_over_several(state):
    before = {host for job in state.jobs if len(set(job.placement)) > 1 for host in job.placement}
    for placements in make_scheduler("pollux", KNOWN).decide(state, 1):
        spread = [set(each) for each in placements.values() if len(set(each)) > 1]
        shared = {host for host, count in Counter(host for hosts in spread for host in hosts).items() if count > 1}
        assert shared <= before  # the state had it so


def test_the_ideal_scheduler_gives_each_job_all_its_gpus_at_once():
    state = State(0.0, cluster(2, 2), tuple(Job(Request(f"j{place}", "vgg", 8, 4, 500, 0.0)) for place in range(3)))
    ideal = make_scheduler("ideal", KNOWN)
    assert ideal.dedicated
    (placements,) = ideal.decide(state, 1)
    assert all(sorted(each) == ["s0", "s1", "s2", "s3"] for each in placements.values())


@pytest.mark.parametrize("name", scheduler_names())
def test_a_job_that_never_fits_is_refused(name):
    state = State(0.0, cluster(2, 2), (Job(Request("big", "vgg", 8, 5, 500, 0.0)),))
    with pytest.raises(
        SchedulingError, match="found 5 GPUs that big requests, expected 4 at most, all that cluster-2x2"
    ):
        make_scheduler(name, KNOWN).decide(state, 1)


def test_a_scheduler_that_is_not_there_names_those_that_are():
    with pytest.raises(
        UsageError, match="found scheduler 'tiresias', expected one of: fifo, ideal, pollux, random, themis"
    ):
        make_scheduler("tiresias", KNOWN)
