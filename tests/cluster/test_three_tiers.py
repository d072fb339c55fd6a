# SPDX-License-Identifier: Apache-2.0
"""Queues of jobs on three tiers: the switches of their flows, their places, and how long they take."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.cluster.job_queue.fabric import Racks, Tiers, fabric_of
from roundabout.models.cluster.job_queue.placement import find_servers
from roundabout.models.cluster.job_queue.rules import RULES
from roundabout.models.cluster.job_queue.spines import Flows
from roundabout.plan.clusters import check_cluster_trial
from roundabout.spec import Topology, load_experiment
from tests.cluster.test_job_queue import RING, STRIDED, leaf_spine, play, slowdowns

pytestmark = pytest.mark.unit

TIERED = [rule for rule in RULES.values() if rule.choose_hops]


def three_tiers(pods, leaves, aggs, cores, *, servers=1):
    """Return pods of leaves with servers of 8 NICs of 400 Gbit/s, and links as fast as one of them above."""
    names = [f"leaf{pod}-{leaf}" for pod in range(pods) for leaf in range(leaves)]
    hosts = {f"s{number}": names[number // servers] for number in range(len(names) * servers)}
    tops = [f"core{core}" for core in range(cores)]
    middle = [f"agg{pod}-{agg}" for pod in range(pods) for agg in range(aggs)]
    ups = [(leaf, agg) for leaf in names for agg in middle if leaf[4 : leaf.index("-")] == agg[3 : agg.index("-")]]
    ups += [(agg, core) for agg in middle for core in tops]
    below = [
        {"name": host, "ends": [host, leaf], "line_rate_gbps": 3280, "payload_rate_gbps": 3200}
        for host, leaf in hosts.items()
    ]
    return Topology.model_validate(
        leaf_spine(1, 2, 1).model_dump(by_alias=True)
        | {
            "hosts": list(hosts),
            "switches": [*names, *middle, *tops],
            "links": [*below, *({"name": "-".join(each), "ends": each} for each in ups)],
        }
    )


@st.composite
def flows(draw):
    """Flows of rings and others between leaves of different numbers, and the tiers above these."""
    pods, leaves = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    tiers = Tiers(np.repeat(np.arange(pods), leaves), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    pairs = st.tuples(*[st.integers(0, pods * leaves - 1)] * 2).filter(lambda ends: ends[0] != ends[1])
    ends = np.array(draw(st.lists(pairs, min_size=1, max_size=20))).T
    numbers, rings = np.arange(ends.shape[1]), draw(st.integers(0, ends.shape[1]))
    return tiers, Flows(np.array([numbers, numbers]), ends, numbers, numbers < rings, numbers * 0)


@settings(max_examples=50)
@given(flows())
def test_rules_choose_paths_that_there_are(drawn):
    tiers, found = drawn
    leaves = int(np.count_nonzero(tiers.pod_of_leaf == 0))
    fabric = fabric_of(three_tiers(tiers.pod_of_leaf.size // leaves, leaves, tiers.aggs, tiers.cores))
    links = {link.ends for link in three_tiers(fabric.tiers.pod_of_leaf[-1] + 1, leaves, tiers.aggs, tiers.cores).links}
    for rule in TIERED:
        hops = rule.choose_hops(found, fabric.tiers, 1)
        for (leaf, other), own in zip(found.leaves.T.tolist(), hops.T.tolist(), strict=True):
            path = fabric.path(leaf, other, own)
            assert {tuple(sorted(edge)) for edge in path} <= {tuple(sorted(ends)) for ends in links}
            assert (path[0][0], path[-1][1]) == (fabric.leaves[leaf], fabric.leaves[other])
            assert len(path) == (2 if fabric.tiers.pod_of_leaf[leaf] == fabric.tiers.pod_of_leaf[other] else 4)


def test_colors_within_a_pod_share_no_link():
    """Two rings around three leaves of a pod, with an aggregation switch for each."""
    ends = np.array([[0, 1, 2, 0, 1, 2], [1, 2, 0, 2, 0, 1]])
    numbers = np.arange(6)
    found = Flows(np.array([numbers, numbers]), ends, numbers, numbers >= 0, numbers * 0)
    chosen = RULES["perfect"].choose_hops(found, Tiers(np.zeros(3, int), 2, 1), 1)
    for side in ends.tolist():
        assert max(Counter(zip(side, chosen[0].tolist(), strict=True)).values()) == 1


def test_crux_takes_the_first_path_whose_busiest_link_has_fewest_flows():
    ends, zeros = np.array([[0, 0, 0], [1, 1, 1]]), np.zeros(3, int)
    found = Flows(np.array([[0, 1, 2], [8, 9, 10]]), ends, zeros, zeros == 0, zeros)
    chosen = RULES["crux"].choose_hops(found, Tiers(np.array([0, 1]), 2, 1), 1)
    assert chosen.T.tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]


def test_rings_between_pods_share_a_core_link():
    """Both flows of a ring's eight in each direction have one link to the core, at its rate."""
    (slow,) = slowdowns(play([(STRIDED, 16, 10, 0.0)], three_tiers(2, 1, 1, 1)))
    assert slow == pytest.approx((341 + 8 * 343.6) / (341 + 343.6))
    (alone,) = slowdowns(play([(STRIDED, 16, 10, 0.0)], three_tiers(2, 1, 8, 1), "perfect"))
    assert alone == pytest.approx(1)


def test_flows_take_other_paths_as_jobs_start_under_ecmp():
    """A ring of two servers in two pods meets itself by chance: it is drawn anew as others start."""
    fabric = three_tiers(2, 2, 8, 8)
    alone = play([(STRIDED, 16, 100, 0.0)], fabric)[0]
    others = [(RING, 16, 1, float(at)) for at in range(20, 100, 10)]
    assert alone.ended_s != pytest.approx(play([(STRIDED, 16, 100, 0.0), *others], fabric)[0].ended_s)


def test_jobs_are_placed_pod_by_pod():
    """Three servers: racks alone give those with most room, in two pods, and with pods those of one pod."""
    rack_of, free = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([1, 2, 3, 4, 6, 7])
    pods = np.array([0, 0, 1, 1])
    assert find_servers(free, 3, Racks(rack_of)).tolist() == [2, 3, 6]
    assert find_servers(free, 3, Racks(rack_of, pods)).tolist() == [2, 3, 1]
    assert find_servers(free, 4, Racks(rack_of, pods)).tolist() == [2, 3, 1, 4]


@pytest.mark.parametrize("missing", ["leaf0-0-agg0-0", "agg1-0-core1"])
def test_three_tiers_that_lack_a_link_are_refused(missing):
    fabric = three_tiers(2, 2, 2, 2)
    broken = fabric.model_copy(update={"links": tuple(link for link in fabric.links if link.name != missing)})
    with pytest.raises(UsageError, match="no three tiers"):
        fabric_of(broken)


def test_spine_groups_are_refused_in_three_tiers():
    cell = next(cell for cell in load_experiment("monkeytree-three-tier").cells if cell.variant == "ecmp")
    cluster = cell.spec.cluster.model_copy(update={"paths": "sglb"})
    with pytest.raises(UsageError, match="found paths sglb with three tiers"):
        check_cluster_trial(cell.spec.model_copy(update={"cluster": cluster}), 1)
