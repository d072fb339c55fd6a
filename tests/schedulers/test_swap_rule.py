# SPDX-License-Identifier: Apache-2.0
"""Swaps of running workers: what they keep, what they gain, and when none is made."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cluster import swap_rule
from roundabout.models.cluster.cassini import RankingRules, decide_alone, decide_with_cassini
from roundabout.models.cluster.demands import DemandFinder, worst_excess
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.cluster.swap_rule import MIN_FALL, MigrationRule, SwapSearch, swap_workers
from tests.schedulers.clusters import KNOWN, MODELS, cluster
from tests.schedulers.made_up_offers import KNOWN as BY_HAND, TREE, Offers

pytestmark = pytest.mark.unit

TWO_GPUS = cluster(3, 2, gpus=2).with_rates(None, 8.0)


@st.composite
def placed(draw):
    """A cluster whose jobs are anywhere, on links that few of them fill."""
    topology = draw(st.sampled_from((TREE, TWO_GPUS)))
    ground = host_tree_of(topology)
    free, jobs = ground.free(()), []
    for place in range(draw(st.integers(1, 5))):
        request = Request(f"j{place}", draw(st.sampled_from(sorted(MODELS))), 8, draw(st.integers(1, 4)), 500, 0.0)
        if request.workers <= free.sum():
            hosts = ground.scatter(free, request.workers, draw(st.randoms(use_true_random=False)))
            jobs.append(Job(request, 0.0, hosts))
    return State(0.0, topology, tuple(jobs))


def summed_excess(state, placements):
    """Compute the excess of every link anew, as the search does not."""
    requests = {job.request.name: job.request for job in state.jobs}
    meetings, demands = {}, DemandFinder(host_tree_of(state.topology), requests, KNOWN)
    for job in requests:
        for link, circle in demands.circles_of(job, placements[job]).items():
            meetings.setdefault(link, []).append(circle)
    gbps = host_tree_of(state.topology).capacity_gbps
    shared = {link: tuple(circles) for link, circles in meetings.items() if len(circles) > 1}
    each = [worst_excess({circles: gbps[link]}) for link, circles in shared.items()]
    return sum(max((one.get(job, 0.0) for one in each), default=0.0) for job in requests)


@settings(deadline=None, max_examples=12)
@given(placed(), st.integers(1, 3))
def test_swaps_keep_each_jobs_workers_and_lower_the_excess_as_they_say(state, most):
    placements, swaps = swap_workers(state, state.placements, KNOWN, most)
    assert len(swaps) <= most
    assert {job: len(each) for job, each in placements.items()} == {
        job: len(each) for job, each in state.placements.items()
    }
    taken = Counter(host for placement in placements.values() for host in placement)
    assert all(count <= state.topology.gpus_per_host for count in taken.values())
    moved = {job for swap in swaps for job in swap.moved}
    assert {job for job, each in placements.items() if each != state.placements[job]} <= moved
    assert all(swap.fall > MIN_FALL - 1e-6 for swap in swaps)
    before, after = (summed_excess(state, each) for each in (state.placements, placements))
    assert before - after == pytest.approx(sum(swap.fall for swap in swaps), abs=1e-9)
    assert swap_workers(state, state.placements, KNOWN, most) == (placements, swaps)


@settings(deadline=None, max_examples=4)
@given(placed())
def test_no_swap_is_better_than_the_best_one(state):
    ground = host_tree_of(state.topology)
    requests = {job.request.name: job.request for job in state.jobs}
    best = SwapSearch(ground, DemandFinder(ground, requests, KNOWN), state.placements).best_swap(0.0)
    least = summed_excess(state, state.placements)
    before = least
    for job, hosts in state.placements.items():
        for host in set(hosts):
            for other in set(ground.hosts) - {host}:
                for taken in [name for name, each in state.placements.items() if other in each and name != job] or [""]:
                    placements = {**state.placements, job: exchanged(ground, hosts, host, other)}
                    if taken:
                        placements[taken] = exchanged(ground, state.placements[taken], other, host)
                    if all(ground.free(placements.values()) >= 0):
                        least = min(least, summed_excess(state, placements))
    assert before - least == pytest.approx(max(best.fall, 0.0) if best else 0.0, abs=1e-9)


def exchanged(ground, hosts, host, by):
    found = list(hosts)
    found[found.index(host)] = by
    return tuple(sorted(found, key=ground.at.__getitem__))


CROSSING = {"a": ("s0", "s3"), "b": ("s1", "s4")}


def running(hosts, now_s=0.0, resumes_s=None):
    """Return jobs of two workers on these hosts; `resumes_s` is by job."""
    jobs = (
        Job(Request(job, "full", 8, 2, 500, 0.0), 0.0, each, resumes_s=(resumes_s or {}).get(job))
        for job, each in hosts.items()
    )
    return State(now_s, TREE, tuple(jobs))


def test_two_jobs_that_cross_are_put_apart_by_one_swap():
    """Each has a worker in either rack. One swap gives each a rack of its own."""
    state = running(CROSSING)
    placements, (swap,) = swap_workers(state, state.placements, BY_HAND, 1)
    racks = host_tree_of(TREE).racks
    assert [len({racks[host] for host in placements[job]}) for job in "ab"] == [1, 1] or swap.other_job == ""
    assert swap.fall == pytest.approx(2 * 0.81, abs=0.01)  # each sends for 180 of 200 ms, so both do for 0.81
    offered = Offers({"a": "s0 s3", "b": "s1 s4"})
    alone = decide_alone(offered, state, 1, BY_HAND, MigrationRule(swaps=1))
    assert alone.placements == placements and set(alone.migrated) == set(swap.moved)
    with_cassini = decide_with_cassini(offered, state, 1, BY_HAND, RankingRules(migration=MigrationRule(swaps=1)))
    assert (with_cassini.placements, with_cassini.timetables) == (placements, {})
    assert decide_alone(offered, state, 1, BY_HAND).placements == state.placements


def test_a_job_that_stands_still_is_not_moved_again():
    """Only c could make room for either; a and b have not resumed yet."""
    hosts = {"a": ("s0", "s3"), "b": ("s1", "s4"), "c": ("s6", "s7")}
    still = running(hosts, 5.0, {"a": 30.0, "b": 30.0})
    assert swap_workers(still, still.placements, BY_HAND, 1) == (hosts, [])
    one = replace(still, jobs=(replace(still.jobs[0], resumes_s=None), *still.jobs[1:]))
    _, (swap,) = swap_workers(one, one.placements, BY_HAND, 1)
    assert "b" not in swap.moved


def test_nobody_moves_for_less_than_the_least_fall(monkeypatch):
    state = running(CROSSING)
    monkeypatch.setattr(swap_rule, "MIN_FALL", 1.7)
    assert swap_workers(state, state.placements, BY_HAND, 1) == (state.placements, [])
