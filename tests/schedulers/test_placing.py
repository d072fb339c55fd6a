# SPDX-License-Identifier: Apache-2.0
"""Workers near each other first; links from one host to another."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini.placement_ranking import MAX_CANDIDATES
from roundabout.models.cluster.placement import draw_alternatives, host_tree_of
from tests.schedulers.clusters import cluster

pytestmark = pytest.mark.unit

TREE = cluster(4, 3)
GROUND = host_tree_of(TREE)


def free_on(**counts):
    return GROUND.free([[host] for host in GROUND.hosts if host not in counts])


def test_a_server_then_a_rack_then_few_racks():
    two_each = host_tree_of(cluster(2, 2, gpus=2))
    free = two_each.free([("s0",)])
    assert two_each.pack(free, 1) == ("s0",)  # where least is left over
    assert two_each.pack(free, 2) == ("s1", "s1")
    assert two_each.pack(free, 4) == ("s2", "s2", "s3", "s3")
    assert not free.any()
    assert GROUND.pack(free_on(s0=1, s3=1, s4=1), 2) == ("s3", "s4")
    spread = GROUND.pack(free_on(s0=1, s3=1, s4=1, s6=1, s7=1, s8=1), 5)
    assert Counter(GROUND.racks[host] for host in spread) == {"t2": 3, "t1": 2}


def test_a_job_that_grows_gets_what_is_near():
    free = free_on(s1=1, s6=1, s7=1)
    assert GROUND.grow(free, ("s0",), 2) == ("s0", "s1")
    assert GROUND.grow(free, ("s8",), 3) == ("s6", "s7", "s8")
    assert not free.any()


def test_links_between_hosts_equal_the_topologys_paths():
    for sender in TREE.hosts:
        for receiver in TREE.hosts:
            hops = {(hop.link.name, hop.link.ends[0] == hop.sender) for hop in TREE.path(sender, receiver)}
            assert set(GROUND.links_between(sender, receiver)) == hops


@settings(deadline=None, max_examples=50)
@given(st.sets(st.sampled_from(GROUND.hosts)), st.integers(1, 12), st.none() | st.integers(0, 99))
def test_pack_takes_free_hosts_in_the_smallest_subtree_that_fits(hosts, workers, seed):
    free = GROUND.free([hosts])
    before = free.copy()
    if workers > free.sum():
        return
    found = GROUND.pack(free, workers, None if seed is None else random.Random(seed))
    assert len(found) == workers and not {*found} & hosts
    assert (before - free == GROUND.gpus_of(found)).all()
    racks = Counter(GROUND.racks[host] for host in GROUND.hosts if host not in hosts)
    assert GROUND.locality(found) == (0 if workers == 1 else 1 if workers <= max(racks.values()) else 2)


def test_candidates_are_ten_at_most_and_no_two_alike():
    draws = iter([{"j": (f"s{number % 12}",)} if number % 2 else None for number in range(100)])
    found = draw_alternatives({"j": ("s1",)}, lambda rng: next(draws), 1)
    assert found == [{"j": (f"s{number}",)} for number in (1, 3, 5, 7, 9, 11)]
    many = iter(range(100))
    assert len(draw_alternatives({}, lambda rng: {"j": (str(next(many)),)}, 1)) == MAX_CANDIDATES
