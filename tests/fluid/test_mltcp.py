# SPDX-License-Identifier: Apache-2.0
"""MLTCP in the fluid model against theory and quadrature, and against what must hold for any jobs."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from roundabout.models.fluid import iteration_times
from roundabout.models.fluid.jobs import (
    Barrier,
    ComputePhase,
    FluidJob,
    Path,
    SendPhase,
    Stream,
    fluid_jobs,
    make_send_phase,
)
from roundabout.models.fluid.limits import fluid_limits
from roundabout.models.fluid.mltcp import (
    SHAPES,
    Factor,
    MltcpError,
    base_of,
    factor_of,
)
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec import Transport, TrialSpec, load_experiment
from roundabout.spec.patterns import all_transfers
from tests.fluid.mltcp_theory import iterations_to_reach, offset_gain
from tests.fluid.oracle import model, rate_integrator
from tests.fluid.oracle.model import Simulation

pytestmark = pytest.mark.unit

LINK, NEXT = ("tor0", "tor1"), ("tor1", "tor2")
RATE = 5e6  # bytes/ms
MLTCP = Factor()


def one_way(compute_ms: float, alone_ms: float, part: float = 1.0, path: Path = (LINK,), **more: Any) -> FluidJob:
    """A job that sends at a part of the link's rate, and then computes."""
    stream = Stream(0, 0, path, RATE * alone_ms * part)
    return FluidJob(
        (SendPhase((stream,), alone_ms, (Barrier((0,), (0,)),)), ComputePhase(compute_ms)), workers=1, **more
    )


def offsets_ms(first: FluidJob, second: FluidJob, iterations: int) -> list[float]:
    """How much later the second job begins each of its iterations, as long as it is the later one."""
    course = Simulation(
        [replace(each, iterations=iterations) for each in (first, second)], ResidualCapacity.constant({LINK: RATE})
    )
    for _ in course:
        pass
    one, other = ([iteration.start_ms for iteration in workers[0]] for workers in course.iterations)
    return [later - earlier for earlier, later in zip(one, other, strict=True)]


# --- F ---------------------------------------------------------------------------------------------------------------

numbers = st.tuples(st.floats(0.1, 10.0), st.floats(0.05, 2.0))


@given(st.sampled_from(list(SHAPES)), numbers)
def test_all_shapes_share_the_linear_ends_and_all_but_one_grow(shape, both):
    slope, intercept = both
    values = Factor(shape, *both)(np.linspace(0, 1, 20))
    ends = [intercept, slope + intercept]
    assert [values[0], values[-1]] == pytest.approx(ends[::-1] if shape == "decreasing" else ends)
    assert (np.diff(values) > 0).all() != (shape == "decreasing")


@given(st.floats(0, 1))
def test_the_published_choices(ratio):
    assert Factor()(ratio) == pytest.approx(1.75 * ratio + 0.25)
    assert Factor("reciprocal")(ratio) == pytest.approx(1 / (-3.5 * ratio + 4))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Factor("cubic"), "shape: found 'cubic', expected linear or quadratic"),
        (lambda: Factor(slope=-1.0), "slope: found -1, expected no number below 0"),
        (lambda: Factor(intercept=0.0), "intercept: found 0, expected a number above 0"),
    ],
)
def test_invalid_mltcp_parameters_are_refused(made, message):
    with pytest.raises(MltcpError, match=message):
        made()


def test_a_transport_says_its_factor():
    def of(name: str, **parameters: float) -> Factor | None:
        return factor_of(Transport.model_validate({"name": name, **parameters}))

    assert of("cubic") is None
    assert of("mltcp_reno") == Factor()
    assert of("mltcp_dctcp", slope=4.0, gap_us=100) == Factor("linear", 4.0, 0.25)
    assert of("mltcp_dcqcn", slope=1.0, intercept=1.0) == Factor("linear", 1.0, 1.0)
    assert of("mltcp_nobody", slope=1.0) is None  # no name makes it MLTCP, and none that is gone stops a report


def test_a_transport_says_what_it_varies():
    def of(name: str) -> str:
        return base_of(Transport.model_validate({"name": name}))

    assert [of(name) for name in ("mltcp_dcqcn", "mltcp_dctcp", "dcqcn")] == ["dcqcn", "dctcp", "dcqcn"]
    assert of("mltcp_reno") == "mltcp_reno"  # the kernel's Reno has no parameters to take


# --- the theory ------------------------------------------------------------------------------------------------------


@given(numbers, st.floats(0.001, 0.9))
def test_mltcp_offsets_converge_at_the_published_rates(both, part):
    slope, intercept = both
    near, far = 1e-9, 1 - 1e-9
    assert (near + offset_gain(near, 1.0, *both)) / near == pytest.approx(1 + slope / intercept, rel=1e-6)
    assert (1 - far - offset_gain(far, 1.0, *both)) / (1 - far) == pytest.approx(
        intercept / (intercept + slope), rel=1e-6
    )
    offset = part
    for _ in range(iterations_to_reach(0.99, part, *both)):
        assert offset < 0.99
        offset += offset_gain(offset, 1.0, *both)
    assert offset >= 0.99 * (1 - 1e-9)


@pytest.mark.parametrize(("part", "iterations"), [(0.001, 6), (0.01, 5), (0.1, 4), (0.3, 3)])
def test_the_published_numbers_of_iterations(part, iterations):
    assert iterations_to_reach(0.99, part, 1.75, 0.25) == iterations
    found = offsets_ms(*(one_way(100.0, 100.0, start_ms=each, factor=MLTCP) for each in (0.0, 100 * part)), 9)
    assert next(number for number, offset in enumerate(found) if offset >= 99) == iterations


like_jobs = st.tuples(st.floats(10.0, 1000.0), st.floats(0.0, 3.0), st.floats(1.0, 4.0), st.integers(1, 8))


@settings(deadline=None, max_examples=60)
@given(numbers, st.floats(1e-4, 1.0), like_jobs)
def test_the_fluid_model_is_the_theory_where_its_conditions_hold(both, part, like):
    # Linear F, a demand of at least the link's rate, computing no shorter than sending, any number of flows.
    alone_ms, more_compute, demand, flows = like
    profile = (alone_ms * (1 + more_compute), alone_ms / demand, demand)
    job = one_way(*profile, factor=Factor("linear", *both), weight=float(flows))
    jobs = (replace(job, start_ms=each) for each in (0.0, part * alone_ms))
    for offset, then in pairwise(offsets_ms(*jobs, 6)):
        assert then == pytest.approx(offset + offset_gain(min(offset, alone_ms), alone_ms, *both), abs=1e-10 * alone_ms)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(list(SHAPES)), numbers, st.floats(0.01, 0.99))
def test_offsets_move_by_the_integral_of_1_over_f(shape, both, part):
    factor = Factor(shape, *both)
    jobs = (one_way(100.0, 100.0, start_ms=each, factor=factor) for each in (0.0, 100 * part))
    _, then = offsets_ms(*jobs, 2)
    apart, _ = quad(lambda ratio: 1 / factor(ratio), part, 1)
    behind = brentq(lambda ratio: quad(lambda each: 1 / factor(each), 0, ratio)[0] - apart, 0, 1, xtol=1e-12)
    assert then == pytest.approx(100 * (1 - behind), abs=1e-6)
    assert (then > 100 * part) != (shape == "decreasing")


def test_noise_in_computing_leaves_an_error_as_derived():
    noise, offset, errors = random.Random(1), 1.0, []
    for _ in range(20_000):
        # As long apart again the jobs' roles change: nearer than the optimum on either side.
        near = min(offset, 2 - offset)
        moved = offset_gain(near, 1.0, 1.75, 0.25)
        offset += (moved if offset <= 1 else -moved) + noise.gauss(0, 0.002) - noise.gauss(0, 0.002)
        errors.append(1 - offset)
    assert np.std(errors) == pytest.approx(0.002 * (2 / (1 - 1 / 64)) ** 0.5, rel=0.03)


def test_from_a_common_start_like_jobs_stay_together_for_ever():
    jobs = [one_way(100.0, 100.0, factor=MLTCP) for _ in range(2)]
    assert [each[-1] for each in iteration_times(jobs, {LINK: RATE}, 40)] == pytest.approx([300.0] * 2)


def test_a_demand_below_the_link_gives_a_smaller_final_offset():
    jobs = (one_way(120.0, 100.0, 0.8, start_ms=each, factor=MLTCP) for each in (0.0, 10.0))
    # What is late is caught up with: 80 of 100 ms at the link's rate would do, and 75 apart no job waits for long.
    assert offsets_ms(*jobs, 20)[-1] == pytest.approx(75.0, abs=1e-3)


# --- any jobs --------------------------------------------------------------------------------------------------------

factors = st.one_of(st.none(), st.builds(Factor, st.sampled_from(list(SHAPES)), st.floats(0.1, 4.0)))
paths = st.sampled_from([(LINK,), (NEXT,), (LINK, NEXT)])
jobs_of_all_kinds = st.lists(
    st.builds(
        one_way,
        st.floats(10.0, 300.0),
        st.floats(20.0, 200.0),
        st.floats(0.2, 1.0),
        paths,
        factor=factors,
        weight=st.integers(1, 4).map(float),
        start_ms=st.floats(0.0, 50.0),
    ),
    min_size=2,
    max_size=4,
)
BOTH = {LINK: RATE, NEXT: 0.7 * RATE}


def alone_ms(job: FluidJob) -> float:
    return iteration_times([job], BOTH, 1)[0][0]


@settings(deadline=None, max_examples=20)
@given(jobs_of_all_kinds)
def test_jobs_beat_neither_their_isolated_time_nor_the_links(jobs):
    course = Simulation([replace(job, iterations=3) for job in jobs], ResidualCapacity.constant(BOTH))
    sent = [0.0] * len(jobs)
    for interval in course:
        for edge, most in BOTH.items():
            carried = sum(rate.bytes_per_ms for rate in interval.rates if edge in rate.stream.path)
            assert carried <= most * (1 + 1e-9)
        for rate in interval.rates:
            sent[rate.job] += rate.bytes_per_ms * (interval.end_ms - interval.begin_ms)
    assert sent == pytest.approx([3 * job.iteration_bytes for job in jobs], rel=1e-7)
    for job, workers in zip(jobs, course.iterations, strict=True):
        assert all(each.end_ms - each.start_ms >= alone_ms(job) * (1 - 1e-9) for each in workers[0])


@settings(deadline=None, max_examples=20)
@given(jobs_of_all_kinds)
def test_plain_shares_are_those_of_weights_that_stay_equal(jobs):
    plain = [replace(job, factor=None) for job in jobs]
    flat = [replace(job, factor=Factor("linear", 1e-12, 1.0)) for job in jobs]
    for one, other in zip(iteration_times(plain, BOTH, 3), iteration_times(flat, BOTH, 3), strict=True):
        assert one[:3] == pytest.approx(other[:3], rel=1e-6)


@settings(deadline=None, max_examples=10)
@given(jobs_of_all_kinds)
def test_the_order_of_jobs_does_not_matter(jobs):
    straight, reverse = (iteration_times(each, BOTH, 2) for each in (jobs, jobs[::-1]))
    for one, other in zip(straight, reverse[::-1], strict=True):
        assert one[:2] == pytest.approx(other[:2], rel=1e-6)


@pytest.mark.proof
@settings(deadline=None, max_examples=10)
@given(jobs_of_all_kinds)
def test_steps_are_as_fine_as_they_need_be(jobs):
    coarse = model.iteration_times(jobs, BOTH, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "TOLERANCE", rate_integrator.TOLERANCE / 1000)
        fine = model.iteration_times(jobs, BOTH, 2)
    for one, other in zip(coarse, fine, strict=True):
        assert one[:2] == pytest.approx(other[:2], rel=1e-6)


def test_a_ring_is_as_one_worker():
    ways, ring = ((LINK,), (LINK[::-1],)), all_transfers("ring", int(100 * RATE), ((0, 1),))
    job = FluidJob((make_send_phase(ring, ways, 100.0), ComputePhase(100.0)), workers=2, factor=MLTCP)
    capacity = {LINK: RATE, LINK[::-1]: RATE}
    jobs = [replace(job, start_ms=each) for each in (0.0, 10.0)]
    first, second = (each[0] for each in iteration_times(jobs, capacity, 1))
    assert 10 + second - first == pytest.approx(10 + offset_gain(10.0, 100.0, 1.75, 0.25), abs=1e-6)
    course = Simulation([replace(each, iterations=1) for each in jobs], ResidualCapacity.constant(capacity))
    for _ in course:
        pass
    assert [workers[1][0].end_ms for workers in course.iterations] == pytest.approx([first, 10 + second])


def test_transfers_within_a_host_do_not_wait():
    streams = (Stream(0, 0, (LINK,), 100 * RATE), Stream(1, 1, (), 50 * RATE))
    barriers = tuple(Barrier((worker,), (worker,)) for worker in (0, 1))
    job = FluidJob((SendPhase(streams, 100.0, barriers), ComputePhase(100.0)), workers=2, factor=MLTCP, iterations=20)
    course = Simulation(
        [job, replace(one_way(100.0, 100.0), iterations=20, factor=MLTCP)], ResidualCapacity.constant({LINK: RATE})
    )
    for interval in course:
        for _, stream, rate in interval.rates:
            assert stream.path or rate == pytest.approx(RATE / 2)
    within = course.iterations[0][1]
    assert [each.end_ms - each.start_ms for each in within] == pytest.approx([200.0] * 20)


def test_three_and_six_jobs_that_fit_interleave():
    for several in (3, 6):
        jobs = [one_way(50.0 * several, 50.0, start_ms=0.5 * place**1.5, factor=MLTCP) for place in range(several)]
        times = iteration_times(jobs, {LINK: RATE}, 60)
        assert [each[-1] for each in times] == pytest.approx([50.0 * (several + 1)] * several, rel=1e-3)


# --- trials ----------------------------------------------------------------------------------------------------------


def vgg19s(transport: str) -> TrialSpec:
    """Figure 1's two jobs, 5 ms apart."""
    spec = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    changed = {"transport": Transport.model_validate({"name": transport})}
    jobs = {name: job.model_copy(update=changed) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": {**jobs, "j2": jobs["j2"].model_copy(update={"start_offset_ms": 5.0})}})


def last_ms(spec: TrialSpec) -> list[float]:
    course = Simulation(
        list(fluid_jobs(spec).values()), ResidualCapacity.constant(dict.fromkeys(edges(spec), 43 * 125e3))
    )
    for _ in course:
        pass
    return [workers[0][-1].end_ms - workers[0][-1].start_ms for workers in course.iterations]


def edges(spec: TrialSpec) -> set[tuple[str, str]]:
    return {edge for job in fluid_jobs(spec).values() for edge in job.edges}


def test_trials_play_mltcp_by_their_transports_names_and_limits_stay_fair():
    plain, mltcp = vgg19s("cubic"), vgg19s("mltcp_cubic")
    assert min(last_ms(plain)) > 355
    assert last_ms(mltcp) == pytest.approx([293.0] * 2, rel=1e-3)
    assert fluid_limits(mltcp) == fluid_limits(plain)
