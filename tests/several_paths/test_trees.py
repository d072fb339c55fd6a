# SPDX-License-Identifier: Apache-2.0
"""NCCL's double binary trees: the transfers, and both models on one link a host, on rails and under ECMP."""

from collections import Counter
from functools import cache
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import UsageError
from roundabout.models.fluid import fluid_jobs
from roundabout.plan.routes import list_routes
from roundabout.runner.testbed import refuse_trees
from roundabout.runner.trial.jobs import check_source_ports, source_ports
from roundabout.runner.trial.routes.flow_probes import list_probes
from roundabout.spec import TrialSpec
from roundabout.spec.patterns import (
    PATTERNS,
    Pattern,
    Transfer,
    all_transfers,
    describe_transfers,
    double_binary_tree,
    find_feeders,
    flow_bytes,
)
from roundabout.spec.routing import source_port
from roundabout.spec.topology import Topology
from tests.packets.comparisons.flow_level import build, differences_ms, profile
from tests.several_paths.fabrics import leaf_spine, rails
from tests.several_paths.trials import plan_lab, planned, trained_by_ddp

pytestmark = pytest.mark.unit

WORKERS = st.integers(2, 64)
SIZES = st.integers(2, 10**9)


def tree(workers: int, size: int) -> tuple[Transfer, ...]:
    return all_transfers("tree", size, (tuple(range(workers)),))


def total(found: tuple[Transfer, ...], end: str) -> Counter[int]:
    sums: Counter[int] = Counter()
    for each in found:
        sums[getattr(each, end)] += each.bytes
    return sums


# --- the transfers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "first", "second"),
    [
        (2, {1: 0}, {0: 1}),
        (3, {1: 2, 2: 0}, {2: 0, 0: 1}),
        (4, {1: 2, 3: 2, 2: 0}, {2: 1, 0: 1, 1: 3}),
        # The trees that src/graph/trees.cc of NCCL draws.
        (
            12,
            {1: 2, 3: 2, 5: 6, 7: 6, 9: 10, 11: 10, 2: 4, 6: 4, 10: 8, 4: 8, 8: 0},
            {0: 1, 2: 1, 4: 5, 6: 5, 8: 9, 10: 9, 1: 3, 5: 7, 9: 7, 7: 3, 3: 11},
        ),
        (
            13,
            {1: 2, 3: 2, 5: 6, 7: 6, 9: 10, 11: 10, 2: 4, 6: 4, 10: 12, 4: 8, 12: 8, 8: 0},
            {2: 3, 4: 3, 6: 7, 8: 7, 10: 11, 12: 11, 3: 5, 7: 5, 11: 0, 5: 9, 0: 9, 9: 1},
        ),
    ],
)
def test_the_trees_are_those_of_nccl(count: int, first: dict[int, int], second: dict[int, int]) -> None:
    assert double_binary_tree(count) == (first, second)


def test_bytes_of_eight_workers_are_those_worked_out_by_hand() -> None:
    """Worker 4 has the children 2 and 6 and the parent 0 in the first tree, and is a leaf below 5 in the second."""
    found = tree(8, 1000)
    assert {each.bytes for each in found} == {500}
    assert len(found) == 2 * 2 * 7
    sent = {0: 1000, 1: 2000, 2: 2000, 3: 2000, 4: 2000, 5: 2000, 6: 2000, 7: 1000}
    assert total(found, "sender") == total(found, "receiver") == sent
    of_4 = {(each.channel, each.receiver): each.feeders for each in found if each.sender == 4}
    assert of_4 == {(0, 2): (0,), (0, 6): (0,), (0, 0): (2, 6), (1, 5): ()}


def test_an_odd_byte_goes_by_the_first_tree() -> None:
    assert {(each.channel, each.bytes) for each in tree(5, 7)} == {(0, 4), (1, 3)}
    assert {each.channel for each in tree(5, 1)} == {0}


@given(WORKERS, SIZES)
def test_every_worker_gets_every_byte_of_every_worker(workers: int, size: int) -> None:
    found = tree(workers, size)
    feeders = find_feeders(found)

    @cache
    def summed(place: int) -> frozenset[int]:
        """Return the workers whose bytes are in the sum that a transfer carries."""
        return frozenset({found[place].sender}).union(*map(summed, feeders[place]))

    for worker in range(workers):
        for channel in (0, 1):
            into = [place for place, each in enumerate(found) if (each.receiver, each.channel) == (worker, channel)]
            assert frozenset({worker}).union(*map(summed, into)) == frozenset(range(workers))
    assert sum({each.channel: each.bytes for each in found}.values()) == size


@given(WORKERS, SIZES)
def test_no_worker_sends_more_than_twice_the_bytes(workers: int, size: int) -> None:
    """In a ring each sends 2(N-1)/N of the bytes, so that all send as much in both patterns."""
    found = tree(workers, size)
    sent = total(found, "sender")
    assert sent == total(found, "receiver")
    assert max(sent.values()) <= 2 * size + size % 2
    assert sent.total() == 2 * (workers - 1) * size


@given(WORKERS)
def test_no_worker_has_children_in_both_trees(workers: int) -> None:
    """The exception is NCCL's: worker 0 of an odd number is a root, and has one child in each tree."""
    first, second = (Counter(parents.values()) for parents in double_binary_tree(workers))
    both = set(first) & set(second)
    assert both == ({0} if workers % 2 else set())
    assert all(first[worker] == second[worker] == 1 for worker in both)
    assert max((first + second).values()) <= 2


@given(WORKERS, SIZES)
def test_a_byte_goes_up_and_down_over_log_2_transfers(workers: int, size: int) -> None:
    feeders = find_feeders(tree(workers, size))

    @cache
    def depth(place: int) -> int:
        return 1 + max(map(depth, feeders[place]), default=0)

    assert max(map(depth, range(len(feeders)))) == 2 * ceil(log2(workers))


# --- on networks -----------------------------------------------------------------------------------------------------

SIZE = 4_000_000


def build_tree(topology: Topology, workers: list[str], share: float, transport: str = "dctcp", **job: int) -> TrialSpec:
    """Return a trial of one job that reduces SIZE bytes by trees at `share` of a link's rate."""
    fabric = topology.model_dump(mode="json", by_alias=True, exclude={"name"})
    jobs = {"j": {"profile": "p", "workers": workers, **job}}
    return build("fabric", jobs, {"p": profile("tree", SIZE, share, 1.0)}, transport, topologies={"fabric": fabric})


@given(st.integers(2, 4), st.integers(1, 3))
@settings(max_examples=8, deadline=None)
def test_each_channel_of_a_tree_stays_on_a_rail(nics: int, flows: int) -> None:
    """Channels 0 to flows - 1 are of the first tree, and as many more of the second."""
    spec = build_tree(rails(2, nics), ["s0", "s1"], 0.5, flows=flows)
    routes = list_routes(spec)
    for route in routes:
        assert [cable.split("-")[-1] for cable in route.cables] == [str(route.number % nics)] * 2
    assert Counter(route.number for route in routes) == dict.fromkeys(range(2 * flows), 2)


def test_channels_between_the_same_workers_have_ports_of_their_own() -> None:
    spec = build_tree(leaf_spine(4, 8, 1), ["s0", "s1", "s2", "s3"], 0.2, flows=2)
    job = spec.jobs["j"]
    (phase,) = (phase for phase in job.profile.phases if phase.bytes)
    shared = [each for each in job.transfers(phase) if (each.sender, each.receiver) == (1, 2)]
    assert [list(job.flow_numbers(each)) for each in shared] == [[0, 1], [2, 3]]
    ports = [job.flow("j", 1, 2, number, spec.topology).source_port for number in range(4)]
    assert ports == [source_port("j", 1, 2, number) for number in range(4)]
    assert len(set(ports)) == 4
    planned = {(route.sender, route.receiver, route.number): route.cables for route in list_routes(spec)}
    assert len({planned["s1", "s2", number] for number in range(4)}) > 1
    played = Counter(stream.path for stream in fluid_jobs(spec)["j"].streams)
    paths = (spec.topology.path(*job.flow("j", *ends, spec.topology)) for ends in _numbered(job.transfers(phase)))
    assert played == Counter(spec.topology.directions(path) for path in paths)


def _numbered(transfers: tuple[Transfer, ...]) -> list[tuple[int, int, int]]:
    return [(each.sender, each.receiver, 2 * each.channel + flow) for each in transfers for flow in range(2)]


@pytest.mark.parametrize(("transport", "flows", "share"), [("dcqcn", 1, 0.45), ("dcqcn", 2, 0.45), ("dctcp", 1, 0.2)])
def test_a_tree_takes_as_long_in_both_models(transport: str, flows: int, share: float) -> None:
    """Hold both models to 3 %. The busiest of eight workers sends twice the bytes: 0.9 or 0.4 of its link.

    Packets cross six transfers of four links, one after the other, which takes 0.02 ms.
    """
    fabric = leaf_spine(8, 16, 1)
    spec = build_tree(fabric, list(fabric.hosts), share, transport, flows=flows)
    assert all(0.015 < longer_ms < 0.03 * whole_ms for whole_ms, longer_ms in differences_ms(spec))


# --- as hosts play it ------------------------------------------------------------------------------------------------


@given(st.integers(2, 24), st.integers(1, 10**6), st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_workers_that_forward_what_they_were_sent_end_with_every_byte(
    workers: int, size: int, flows: int, random: Random
) -> None:
    """Play the description of trainers/PROTOCOL.md: flows advance in any order, by any bytes that feeders allow."""
    described = describe_transfers("tree", tree(workers, size))
    places = {
        (sender, receiver, channel): place for place, (sender, receiver, _, _, channel, _) in enumerate(described)
    }
    fed_by = [
        [places[feeder, sender, channel] for feeder in feeders] for sender, _, _, _, channel, feeders in described
    ]
    for flow in range(flows):
        sizes = [flow_bytes(each[2], flows, flow) for each in described]
        sent = [0] * len(described)
        while waiting := [
            (place, allowed)
            for place, size in enumerate(sizes)
            if (allowed := min([size, *(sent[feeder] for feeder in fed_by[place])])) > sent[place]
        ]:
            place, allowed = random.choice(waiting)
            sent[place] = allowed if random.random() < 0.9 else random.randint(sent[place] + 1, allowed)
        assert sent == sizes


@given(st.sampled_from(sorted(set(PATTERNS) - {"tree"})), st.integers(1, 32), SIZES)
def test_other_patterns_are_described_as_before(pattern: Pattern, half: int, size: int) -> None:
    found = all_transfers(pattern, size, (tuple(range(2 * half)),))
    for each, described in zip(found, describe_transfers(pattern, found), strict=True):
        assert tuple(described) == each[: 3 if each.lead_bytes is None else 4]


def test_two_workers_of_a_host_share_no_source_port() -> None:
    spec = build_tree(rails(2, 2), ["s0", "s0", "s1", "s1"], 0.2, flows=2)
    assert source_ports(spec, "j") == [61_000, 61_004] * 2


def test_route_probes_have_the_ports_of_both_trees() -> None:
    """Both trees of two workers join them, in both directions."""
    spec = build_tree(leaf_spine(), ["s0", "s2"], 0.2, flows=2)
    probes = list_probes(planned(spec), plan_lab(spec.topology))
    assert sorted(probe.source_port or 0 for probe in probes) == sorted([61_000, 61_001, 61_002, 61_003] * 2)


def test_too_many_flows_for_the_ports_of_a_host_are_refused() -> None:
    spec = build_tree(leaf_spine(), ["s0", "s2"], 0.5)

    def crowded(flows: int) -> TrialSpec:
        job = spec.jobs["j"].model_copy(update={"workers": ("s0",) * 64, "flows": flows})
        return spec.model_copy(update={"jobs": {"j": job}})

    check_source_ports(crowded(35))
    with pytest.raises(UsageError, match=r"jobs\.j\.flows: found 36 in each of 2 channels, .*; allowed are 35 at most"):
        check_source_ports(crowded(36))


def test_trainers_with_one_channel_refuse_a_tree() -> None:
    spec = build_tree(leaf_spine(), ["s0", "s2"], 0.5)
    refuse_trees(spec)
    with pytest.raises(
        UsageError, match=r"jobs\.j\.trainer\.name: found ddp with the pattern tree in phase .*, allowed is"
    ):
        refuse_trees(trained_by_ddp(spec, "ecmp"))
