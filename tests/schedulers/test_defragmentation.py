# SPDX-License-Identifier: Apache-2.0
"""Moves of workers until few jobs reach beyond each rack: what they keep, how few they are, and when there are none."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cluster import defragmentation
from roundabout.models.cluster.cassini import RankingRules, decide_alone, decide_with_cassini
from roundabout.models.cluster.defragmentation import fewest_moves, limit_fragments
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.cluster.swap_rule import MigrationRule
from tests.schedulers.clusters import cluster
from tests.schedulers.made_up_offers import KNOWN as BY_HAND, TREE, Offers

pytestmark = pytest.mark.unit

SMALL, LARGE, TWO_GPUS = cluster(3, 2), cluster(6, 4), cluster(3, 2, gpus=2)


@st.composite
def scattered(draw, *topologies, most=12):
    """A cluster whose jobs are anywhere; some stand still after a move."""
    topology = draw(st.sampled_from(topologies))
    ground = host_tree_of(topology)
    free, jobs = ground.free(()), []
    for place in range(draw(st.integers(1, most))):
        request = Request(f"j{place}", "vgg", 8, draw(st.integers(1, 6)), 500, 0.0)
        if request.workers <= free.sum():
            hosts = ground.scatter(free, request.workers, draw(st.randoms(use_true_random=False)))
            jobs.append(Job(request, 0.0, hosts))
    return State(0.0, topology, tuple(jobs))


def with_still(state, still):
    return replace(
        state, jobs=tuple(replace(job, resumes_s=9.0 if job.request.name in still else None) for job in state.jobs)
    )


def rack_counts(state, placements):
    """Count each job's workers in each rack."""
    racks = host_tree_of(state.topology).racks
    return {job: Counter(racks[host] for host in hosts) for job, hosts in placements.items()}


def most_fragments(state, placements):
    spread = (counts for counts in rack_counts(state, placements).values() if len(counts) > 1)
    return max(Counter(rack for counts in spread for rack in counts).values(), default=0)


def moved_workers(before, after):
    return sum((Counter(before[job]) - Counter(after[job])).total() for job in before)


@settings(deadline=None, max_examples=25)
@given(
    scattered(SMALL, LARGE, TWO_GPUS), st.integers(1, 3), st.sets(st.sampled_from([f"j{each}" for each in range(12)]))
)
def test_moves_keep_jobs_whole_and_racks_within_the_bound(state, most, still):
    state = with_still(state, still)
    before, after = state.placements, limit_fragments(state, state.placements, most)
    assert {job: len(hosts) for job, hosts in after.items()} == {job: len(hosts) for job, hosts in before.items()}
    taken = Counter(host for hosts in after.values() for host in hosts)
    assert max(taken.values()) <= state.topology.gpus_per_host
    changed = {job for job in before if after[job] != before[job]}
    counts = rack_counts(state, before)
    assert changed.isdisjoint(still)
    assert all(len(counts[job]) > 1 for job in changed)
    assert most_fragments(state, after) <= most or after == before
    assert limit_fragments(state, before, most) == after


@settings(deadline=None, max_examples=15)
@given(scattered(SMALL, LARGE, TWO_GPUS))
def test_two_fragments_a_rack_are_always_possible(state):
    """MonkeyTree's theorem: jobs that fill racks one after the other reach over two racks' common border only."""
    assert most_fragments(state, limit_fragments(state, state.placements, 2)) <= 2


def divisions(workers, room):
    """Return all numbers in racks of these sizes that sum up to `workers`."""
    return [each for each in product(*(range(min(workers, size) + 1) for size in room)) if sum(each) == workers]


def brute_force(present, room, most):
    """Return the fewest moves over all numbers of each job in each rack; None if none is within the bounds."""
    least = None
    for chosen in product(*(divisions(own.sum(), room) for own in present)):
        numbers = np.array(chosen)
        fragments = sum((own > 0 for own in numbers if np.count_nonzero(own) > 1), start=np.zeros(len(room), int))
        if (numbers.sum(axis=0) <= room).all() and (fragments <= most).all():
            moves = int(np.maximum(present - numbers, 0).sum())
            least = moves if least is None else min(least, moves)
    return least


@settings(deadline=None, max_examples=12)
@given(scattered(SMALL, TWO_GPUS, most=3), st.integers(1, 2))
def test_no_other_placements_take_fewer_moves(state, most):
    ground = host_tree_of(state.topology)
    racks = dict.fromkeys(ground.racks.values())
    spread = {job: own for job, own in rack_counts(state, state.placements).items() if len(own) > 1}
    after = limit_fragments(state, state.placements, most)
    if most_fragments(state, state.placements) <= most:
        assert after == state.placements
        return
    own = np.array([[counts[rack] for rack in racks] for counts in spread.values()])
    free = ground.free(hosts for job, hosts in state.placements.items() if job not in spread)
    inside = np.array([[ground.racks[host] == rack for host in ground.hosts] for rack in racks])
    fewest = brute_force(own, inside @ free, most)
    if fewest is None:
        assert after == state.placements
    else:
        assert most_fragments(state, after) <= most
        assert moved_workers(state.placements, after) == fewest


CROSSING = {"a": ("s0", "s3"), "b": ("s1", "s4")}


def running(hosts):
    jobs = (Job(Request(job, "full", 8, len(each), 500, 0.0), 0.0, each) for job, each in hosts.items())
    return State(0.0, TREE, tuple(jobs))


def test_one_worker_moves_where_two_jobs_share_uplinks():
    state = running(CROSSING)
    after = limit_fragments(state, CROSSING, 1)
    assert most_fragments(state, after) <= 1
    assert moved_workers(CROSSING, after) == 1
    assert limit_fragments(state, CROSSING, 2) is CROSSING


def test_a_job_that_stands_still_counts_and_stays():
    state = with_still(running(CROSSING), {"a"})
    after = limit_fragments(state, CROSSING, 1)
    assert after["a"] == CROSSING["a"]
    assert len({host_tree_of(TREE).racks[host] for host in after["b"]}) == 1
    both = with_still(state, {"a", "b"})
    assert limit_fragments(both, CROSSING, 1) is CROSSING


def test_nothing_moves_where_the_bound_cannot_be_kept(monkeypatch):
    assert fewest_moves(np.array([[1, 1], [1, 1]]), np.array([2, 2]), np.array([0, 0])) is not None
    assert fewest_moves(np.array([[2, 1], [1, 2]]), np.array([3, 3]), np.array([2, 2])).tolist() == [[2, 1], [1, 2]]
    assert fewest_moves(np.array([[2, 2], [1, 1]]), np.array([3, 3]), np.array([0, 0])) is None
    monkeypatch.setattr(defragmentation, "fewest_moves", lambda *_: None)
    assert limit_fragments(running(CROSSING), CROSSING, 1) is CROSSING


def test_moves_come_after_the_schedulers_choice():
    offered, state = Offers({"a": "s0 s3", "b": "s1 s4"}), running(CROSSING)
    rule = MigrationRule(fragments=1)
    alone = decide_alone(offered, state, 1, BY_HAND, rule)
    assert alone.placements == limit_fragments(state, CROSSING, 1)
    assert alone.migrated == tuple(job for job in CROSSING if alone.placements[job] != CROSSING[job])
    assert len(alone.migrated) == 1
    with_cassini = decide_with_cassini(offered, state, 1, BY_HAND, RankingRules(migration=rule))
    assert (with_cassini.placements, with_cassini.timetables) == (alone.placements, {})
