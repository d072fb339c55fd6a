# SPDX-License-Identifier: Apache-2.0
"""Crux's priorities: jobs by the use of GPUs that their precedence gains, and levels that keep this order."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import Arc, Circle
from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.crux import (
    CommunicatingJob,
    assign_priorities,
    compress_priorities,
    with_crux_priorities,
)
from roundabout.models.cluster.state import Job, Request, State
from roundabout.models.fluid import Engine, ResidualCapacity
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS
from roundabout.models.fluid.jobs import Barrier, ComputePhase, FluidJob, SendPhase, Stream
from tests.schedulers.clusters import KNOWN, cluster, with_links_of

pytestmark = pytest.mark.unit

LINK_GBPS = 40.0
TREE = with_links_of(cluster(3, 3), 43.0)


def sending(name: str, computes_ms: float, sends_ms: float, gbps: float = LINK_GBPS, gpus: int = 2) -> CommunicatingJob:
    """A job that computes, and then sends."""
    circle = Circle(name, computes_ms + sends_ms, (Arc(computes_ms, computes_ms + sends_ms, gbps),))
    return CommunicatingJob(name, computes_ms * gpus, circle, LINK_GBPS)


def test_intensity_is_computing_over_the_time_on_the_slowest_link() -> None:
    job = sending("a", computes_ms=300.0, sends_ms=100.0, gbps=20.0, gpus=4)
    assert (job.sending_ms, job.intensity, job.link_share) == pytest.approx((50.0, 24.0, 0.125))


def test_jobs_that_do_not_disturb_each_other_rank_by_intensity() -> None:
    jobs = [sending("a", 100.0, 100.0, gbps=10.0), sending("b", 300.0, 100.0, gbps=20.0), sending("c", 50, 60, gbps=5)]
    found = assign_priorities(jobs)
    assert found == pytest.approx({job.name: job.intensity for job in jobs})
    assert list(found) == sorted(found, key=lambda name: -found[name])


def computing_rate(first: CommunicatingJob, second: CommunicatingJob) -> float:
    """Computing time of all GPUs in a ms, where the first of two jobs has precedence on a link."""
    engine = Engine(ResidualCapacity.constant({("x", "y"): LINK_GBPS * BYTES_PER_MS_OF_GBPS}))
    for priority, job in ((1, first), (0, second)):
        (arc,) = job.circle.arcs
        size = arc.gbps * BYTES_PER_MS_OF_GBPS * (arc.end_ms - arc.begin_ms)
        phase = SendPhase((Stream(0, 0, (("x", "y"),), size),), arc.end_ms - arc.begin_ms, (Barrier((0,), (0,)),))
        engine.add(job.name, FluidJob((ComputePhase(arc.begin_ms), phase), workers=1, priority=priority))
    lasts_ms = 2000 * max(first.circle.iteration_ms, second.circle.iteration_ms)
    engine.run(lasts_ms)
    return sum(job.computing_ms * engine.completed(job.name) for job in (first, second)) / lasts_ms


@pytest.mark.parametrize(
    "job",
    [
        sending("b", 90.0, 30.0),  # as intense as the reference, with shorter iterations
        sending("b", 31.0, 30.0, gpus=8),  # sends for half of its time
        sending("b", 700.0, 130.0, gpus=1),  # less intense, with long iterations
        sending("b", 97.0, 41.0, gbps=15.0, gpus=6),
    ],
)
def test_the_job_of_higher_priority_is_the_one_whose_precedence_uses_gpus_more(job: CommunicatingJob) -> None:
    reference = sending("a", 331.0, 271.0)
    found = assign_priorities([reference, job])
    b_first, a_first = computing_rate(job, reference), computing_rate(reference, job)
    assert abs(b_first - a_first) > 0.005 * a_first
    assert (found["b"] > found["a"]) == (b_first > a_first)


@st.composite
def contention(draw: st.DrawFn) -> tuple[list[str], dict[tuple[str, str], float]]:
    """Jobs in falling order of priority, and weights of pairs that contend."""
    order = [f"j{place}" for place in range(draw(st.integers(0, 9)))]
    pairs = [pair for pair in combinations(order, 2) if draw(st.booleans())]
    return order, {pair: draw(st.floats(0.01, 100)) for pair in pairs}


def longest_path(order: list[str], weights: dict[tuple[str, str], float]) -> int:
    lengths: dict[str, int] = {}
    for job in order:
        lengths[job] = 1 + max((lengths[higher] for higher, lower in weights if lower == job), default=0)
    return max(lengths.values(), default=0)


@settings(max_examples=200, deadline=None)
@given(contention(), st.integers(2, 7))
def test_levels_keep_the_order_of_contending_jobs_as_far_as_they_suffice(drawn, levels: int) -> None:
    order, weights = drawn
    found = compress_priorities(order, weights, levels)
    assert found.keys() == set(order)
    assert all(1 <= level <= levels for level in found.values())
    assert all(found[higher] >= found[lower] for higher, lower in weights)
    if longest_path(order, weights) <= levels:
        assert all(found[higher] > found[lower] for higher, lower in weights)
    else:
        assert len(set(found.values())) == levels


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=7), st.integers(2, 4))
def test_where_all_jobs_contend_levels_are_cut_where_least_is_lost(intensities: list[float], levels: int) -> None:
    order = [f"j{place}" for place in range(len(intensities))]
    weights = {pair: intensities[order.index(pair[0])] for pair in combinations(order, 2)}
    found = compress_priorities(order, weights, levels)
    lost = sum(weight for (higher, lower), weight in weights.items() if found[higher] == found[lower])
    assert lost == pytest.approx(min(losses(order, weights, levels)), abs=1e-9)


def losses(order: list[str], weights: dict[tuple[str, str], float], levels: int) -> list[float]:
    """The weight within segments of each way to cut an order."""
    inner = range(1, len(order))
    cuts = [cut for count in range(min(levels, len(order))) for cut in combinations(inner, count)]
    return [
        sum(
            weights[pair]
            for begin, end in pairwise((0, *cut, len(order)))
            for pair in combinations(order[begin:end], 2)
        )
        for cut in cuts
    ]


def decide(placements: dict[str, tuple[str, ...]], models: dict[str, str], levels: int = 7) -> PlacementDecision:
    jobs = tuple(Job(Request(job, model, 8, 2, 500, 0.0)) for job, model in models.items())
    policy = with_crux_priorities(lambda state, seed: PlacementDecision(placements, {}, ()), KNOWN, levels)
    return policy(State(0.0, TREE, jobs), 1)


def test_jobs_of_a_placement_get_levels_where_they_contend() -> None:
    placements = {"v": ("s0", "s3"), "r": ("s1", "s4"), "b": ("s6", "s7")}
    decided = decide(placements, {"v": "vgg", "r": "resnet", "b": "bert", "waits": "vgg"})
    assert decided.placements == placements
    assert decided.priorities.keys() == set("vrb")
    assert decided.priorities["r"] > decided.priorities["v"]  # resnet computes more for each byte
    assert decided == decide(placements, {"v": "vgg", "r": "resnet", "b": "bert", "waits": "vgg"})


def test_jobs_that_send_nothing_have_no_priority() -> None:
    assert decide({"v": ("s0",)}, {"v": "vgg"}).priorities == {}
