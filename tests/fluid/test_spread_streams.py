# SPDX-License-Identifier: Apache-2.0
"""Streams that are spread over several links, in the flow-level model."""

import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.models.fluid.engine import Engine, iteration_times
from roundabout.models.fluid.jobs import Barrier, ComputePhase, FluidJob, SendPhase, Stream, fluid_jobs
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec.routing import Routing
from roundabout.testbeds.fluid.provider import create_provider
from tests.several_paths.fabrics import leaf_spine
from tests.several_paths.spread_trials import trial

pytestmark = pytest.mark.unit

ONE, TWO = ("a", "b"), ("a", "c")
SIZE, ALONE_MS = 1000.0, 10.0


def job(*streams: Stream) -> FluidJob:
    """A job that computes for 10 ms and then sends streams of 1000 bytes in 10 ms alone."""
    barrier = Barrier((0,), tuple(range(len(streams))))
    return FluidJob((ComputePhase(10.0), SendPhase(streams, ALONE_MS, (barrier,))), 1)


def stream(*links: tuple[tuple[str, str], float]) -> Stream:
    return Stream(0, 0, tuple(link for link, _ in links), SIZE, shares=tuple(share for _, share in links))


def test_a_link_bounds_a_stream_by_its_share() -> None:
    # A quarter of 100 bytes/ms crosses a link of 10: the stream sends 40 bytes/ms, and ends after 25 ms.
    [times] = iteration_times([job(stream((ONE, 0.25), (TWO, 0.75)))], {ONE: 10.0, TWO: 1000.0}, 2)
    assert times == pytest.approx([35.0] * len(times))


def test_streams_share_a_link_by_what_they_bring_there() -> None:
    # Max-min: both get the rate r at which 0.5 r + r = 120 bytes/ms, until one of them has sent its bytes.
    both = [job(stream((ONE, 0.5), (TWO, 0.5))), job(stream((ONE, 1.0)))]
    times = iteration_times(both, {ONE: 120.0, TWO: 1000.0}, 1)
    assert times[0][0] == times[1][0] == pytest.approx(10 + SIZE / 80)


def test_links_carry_their_share_of_bytes() -> None:
    engine = Engine(ResidualCapacity.constant({ONE: 1000.0, TWO: 1000.0}), sample_ms=10.0)
    engine.add("j", FluidJob(job(stream((ONE, 0.25), (TWO, 0.75))).phases, 1, iterations=1))
    engine.run_to_end()
    engine.run(engine.now_ms + 10)
    assert {link: sizes[-1] for link, sizes in engine.carried().items()} == pytest.approx({ONE: 250.0, TWO: 750.0})


def test_spraying_ends_a_collision() -> None:
    # 80 Gbit/s on two spines of 43: no link is full, whichever paths ECMP would have drawn.
    spec = trial(leaf_spine(routing=Routing(name="spray")), {"a": ["s0", "s2"], "b": ["s1", "s3"]})
    rate = 43e9 / 8 / 1e3
    topology = spec.topology
    capacity = {
        topology.direction(link, *ends): rate for link in topology.links for ends in (link.ends, link.ends[::-1])
    }
    for times in iteration_times(list(fluid_jobs(spec).values()), capacity, 2):
        assert times == pytest.approx([1.1] * len(times))


@pytest.mark.parametrize("routing", [{"name": "adaptive"}, {"name": "flowlet", "gap_us": 5}, {"name": "reps"}])
def test_rules_that_need_packets_are_refused(routing: dict[str, str | int]) -> None:
    spec = trial(leaf_spine(routing=Routing.model_validate(routing)), {"a": ["s0", "s2"]})
    with pytest.raises(RoundaboutError, match=f"found {routing['name']}, allowed are static, ecmp, rail, spray"):
        create_provider({}).check_trial(spec)


def test_spraying_is_played() -> None:
    create_provider({}).check_trial(trial(leaf_spine(routing=Routing(name="spray")), {"a": ["s0", "s2"]}))
