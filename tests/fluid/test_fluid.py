# SPDX-License-Identifier: Apache-2.0
"""The fluid model against known cases, and against what must hold for any topology, jobs and phases."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS, residual_of_loads
from roundabout.models.fluid.engine import EndlessJobs, iteration_times
from roundabout.models.fluid.jobs import ComputePhase, FluidJob, fluid_jobs, make_send_phase
from roundabout.models.fluid.limits import (
    best_offsets,
    common_periods_ms,
    fluid_limits,
    unified_means_ms,
    unified_period,
)
from roundabout.models.fluid.residual_capacity import ResidualCapacity
from roundabout.spec import Profile, load_experiment
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import all_transfers
from tests.fluid.fluid_trials import DUMBBELL, HOSTS, STAR, beside, ring, trial
from tests.fluid.oracle.model import Simulation
from tests.fluid.oracle.rates import Flow, max_min_rates
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit


class Send(NamedTuple):
    """A phase in which two workers send `size` bytes to each other."""

    size: float
    alone_ms: float


VGG19 = (ComputePhase(150.0), Send(574_680_000, 143.0))
LINK = ("tor0", "tor1")
BACK = LINK[::-1]
PAYLOAD = {LINK: 43 * BYTES_PER_MS_OF_GBPS, BACK: 43 * BYTES_PER_MS_OF_GBPS}


def two_ways(phases, **kwargs):
    """A job of two workers at the two ends of the link."""
    ways, ring = ((LINK,), (BACK,)), ((0, 1),)
    played = (
        phase
        if isinstance(phase, ComputePhase)
        else make_send_phase(all_transfers("ring", int(phase.size), ring), ways, phase.alone_ms)
        for phase in phases
    )
    return FluidJob(tuple(played), workers=2, **kwargs)


# --- rates -----------------------------------------------------------------------------------------------------------

edges = st.sampled_from([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")])
flows = st.lists(
    st.builds(
        Flow,
        path=st.lists(edges, min_size=1, max_size=4, unique=True).map(tuple),
        demand=st.one_of(st.floats(0.01, 50), st.just(float("inf"))),
        weight=st.integers(1, 4).map(float),
    ),
    min_size=1,
    max_size=8,
)
rates_of_links = st.fixed_dictionaries({edge: st.floats(0.5, 40) for edge in edges.elements})


@given(flows, rates_of_links)
def test_rates_exceed_neither_link_capacities_nor_demands(demanding, capacity):
    rates = max_min_rates(demanding, capacity)
    for edge, most in capacity.items():
        assert sum(rate for flow, rate in zip(demanding, rates, strict=True) if edge in flow.path) <= most * (1 + 1e-9)
    assert all(0 < rate <= flow.demand for flow, rate in zip(demanding, rates, strict=True))


@given(flows, rates_of_links)
def test_an_unsatisfied_flow_has_the_largest_share_of_a_full_link(demanding, capacity):
    rates = max_min_rates(demanding, capacity)
    share = [rate / flow.weight for flow, rate in zip(demanding, rates, strict=True)]
    for flow, rate, own in zip(demanding, rates, share, strict=True):
        if rate >= flow.demand:
            continue
        bottlenecks = []
        for edge in flow.path:
            on_edge = [i for i, other in enumerate(demanding) if edge in other.path]
            full = sum(rates[i] for i in on_edge) >= capacity[edge] * (1 - 1e-9)
            bottlenecks.append(full and max(share[i] for i in on_edge) <= own * (1 + 1e-9))
        assert any(bottlenecks)


@given(flows, rates_of_links, st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(demanding, capacity, random):
    order = list(range(len(demanding)))
    random.shuffle(order)
    straight = max_min_rates(demanding, capacity)
    shuffled = max_min_rates([demanding[i] for i in order], capacity)
    assert [straight[i] for i in order] == pytest.approx(shuffled, rel=1e-9)


ranked = st.lists(
    st.builds(
        Flow,
        path=st.lists(edges, min_size=1, max_size=4, unique=True).map(tuple),
        demand=st.one_of(st.floats(0.01, 50), st.just(float("inf"))),
        weight=st.integers(1, 4).map(float),
        priority=st.integers(0, 2),
    ),
    min_size=1,
    max_size=8,
)


@given(ranked, rates_of_links)
def test_a_higher_priority_gets_what_it_would_get_without_lower_ones(demanding, capacity):
    rates = max_min_rates(demanding, capacity)
    for least in {flow.priority for flow in demanding}:
        upper = [i for i, flow in enumerate(demanding) if flow.priority >= least]
        assert [rates[i] for i in upper] == max_min_rates([demanding[i] for i in upper], capacity)


@given(ranked, rates_of_links)
def test_an_unsatisfied_flow_crosses_a_link_full_of_its_priority_or_higher(demanding, capacity):
    rates = max_min_rates(demanding, capacity)
    assert all(0 <= rate <= flow.demand for flow, rate in zip(demanding, rates, strict=True))
    for flow, rate in zip(demanding, rates, strict=True):
        carried = {
            edge: sum(
                other_rate
                for other, other_rate in zip(demanding, rates, strict=True)
                if edge in other.path and other.priority >= flow.priority
            )
            for edge in flow.path
        }
        assert all(carried[edge] <= capacity[edge] * (1 + 1e-9) for edge in flow.path)
        assert rate >= flow.demand or any(carried[edge] >= capacity[edge] * (1 - 1e-9) for edge in flow.path)


# --- jobs ------------------------------------------------------------------------------------------------------------

phases = st.lists(
    st.one_of(
        st.builds(ComputePhase, st.floats(0, 300)),
        st.builds(Send, st.integers(10**6, 10**9).map(float), st.floats(20, 300)),
    ),
    min_size=1,
    max_size=4,
).filter(lambda each: any(isinstance(phase, Send) for phase in each))


# Periods that fit into each other soon: without a common multiple the search takes seconds.
round_phases = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 20), st.integers(1, 4)).map(
        lambda each: (ComputePhase(50.0 * each[0]), Send(50e6 * each[1], 50.0 * each[2]))
    ),
    min_size=1,
    max_size=2,
).map(lambda pairs: [phase for pair in pairs for phase in pair])


def least_ms(phase, payload=PAYLOAD[LINK]):
    """How long a phase takes alone: at its own demand, or at the link's rate where that is less."""
    return phase.ms if isinstance(phase, ComputePhase) else max(phase.alone_ms, phase.size / payload)


@given(phases)
def test_alone_a_job_takes_what_its_phases_take(own):
    times = iteration_times([two_ways(own)], PAYLOAD, iterations=5)[0]
    assert times == pytest.approx([sum(map(least_ms, own))] * 5, rel=1e-9)


@settings(max_examples=50)
@given(phases, phases, st.floats(0, 400))
def test_two_jobs_run_between_isolated_and_half_link_speed(first, second, offset):
    together = iteration_times([two_ways(first), two_ways(second, start_ms=offset)], PAYLOAD, iterations=6)
    for own, times in zip((first, second), together, strict=True):
        slowest = sum(least_ms(phase, PAYLOAD[LINK] / 2) for phase in own)
        assert all(sum(map(least_ms, own)) * (1 - 1e-9) <= time <= slowest * (1 + 1e-9) for time in times)


@settings(max_examples=20)
@given(phases, st.floats(0.5, 0.99))
def test_a_congested_link_carries_less_and_a_job_alone_does_not_congest_it(own, congested):
    assert iteration_times([two_ways(own)], PAYLOAD, 5, congested) == iteration_times([two_ways(own)], PAYLOAD, 5)
    greedy = two_ways([Send(100 * PAYLOAD[LINK], 100.0)])
    together = iteration_times([greedy] * 2, PAYLOAD, 5, congested)
    assert together == [pytest.approx([200 / congested] * 5)] * 2


@settings(max_examples=50)
@given(phases, phases, st.floats(0, 400))
def test_beside_a_lower_priority_a_job_is_as_alone(first, second, offset):
    higher = two_ways(first, priority=1, iterations=6)
    course = Simulation([higher, two_ways(second, start_ms=offset, iterations=6)], ResidualCapacity.constant(PAYLOAD))
    list(course)
    times = [iteration.end_ms - iteration.start_ms for iteration in course.iterations[0][0]]
    assert times == pytest.approx([sum(map(least_ms, first))] * 6, rel=1e-9, abs=1e-6)


def test_equal_jobs_with_priorities_interleave_as_if_alone():
    spec = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    ranks = {"j1": 2, "j2": 1}
    jobs = {name: job.model_copy(update={"priority": ranks[name]}) for name, job in spec.jobs.items()}
    spec = spec.model_copy(update={"jobs": jobs})
    higher, lower = iteration_times(list(fluid_jobs(spec).values()), residual_of_loads(spec), iterations=6)
    assert higher[:6] == pytest.approx([293] * 6)
    assert lower[0] == pytest.approx(150 + 2 * 574.68e6 / PAYLOAD[LINK])  # when both are through
    assert lower[5] == pytest.approx(293, rel=1e-3)
    limits = fluid_limits(spec)
    assert limits["j1"] == limits["j2"]  # fair is fair


@settings(max_examples=50)
@given(phases, phases)
def test_two_jobs_together_carry_no_more_than_the_link(first, second):
    jobs = [two_ways(first), two_ways(second)]
    together = iteration_times(jobs, PAYLOAD, iterations=8)
    span = min(sum(times[:8]) for times in together)
    carried = 0.0
    for own, times in zip((first, second), together, strict=True):
        complete = sum(sum(times[: count + 1]) <= span * (1 + 1e-12) for count in range(len(times)))
        carried += complete * sum(phase.size for phase in own if isinstance(phase, Send))
    assert carried <= PAYLOAD[LINK] * span * (1 + 1e-9)


@settings(max_examples=30)
@given(st.lists(phases, min_size=2, max_size=3))
def test_the_order_of_jobs_does_not_matter(several):
    straight = iteration_times([two_ways(own) for own in several], PAYLOAD, iterations=4)
    reverse = iteration_times([two_ways(own) for own in several[::-1]], PAYLOAD, iterations=4)
    for one, other in zip(straight, reverse[::-1], strict=True):
        assert one[:4] == pytest.approx(other[:4], rel=1e-6)


@settings(max_examples=30)
@given(st.lists(phases, min_size=1, max_size=3), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_jobs_that_go_on_take_the_times_of_jobs_simulated_at_once(several, requested):
    jobs = [two_ways(own) for own in several]
    endless = EndlessJobs(jobs, PAYLOAD)
    for iterations in requested:
        assert endless.iteration_times(iterations) == iteration_times(jobs, PAYLOAD, iterations)


@pytest.mark.proof
@settings(max_examples=3, deadline=None)
@given(round_phases, round_phases)
def test_the_best_offsets_are_no_worse_than_a_common_start(first, second):
    jobs = [two_ways(first), two_ways(second)]

    def slowdown(placed):
        means_ms = unified_means_ms(placed, PAYLOAD)
        return sum(mean_ms / sum(map(least_ms, own)) for own, mean_ms in zip((first, second), means_ms, strict=True))

    assert slowdown(best_offsets(jobs, PAYLOAD)) <= slowdown(jobs) * (1 + 1e-6)


def test_bytes_wait_while_a_link_is_shared_and_leave_when_it_is_free():
    early, late = two_ways([Send(43e6, 10.0), ComputePhase(1000.0)]), two_ways([ComputePhase(10.0), Send(43e6, 10.0)])
    # Demands of 34.4 Gbit/s: the first is done before the second begins.
    assert [times[0] for times in iteration_times([early, late], PAYLOAD, 1)] == pytest.approx([1010.0, 20.0])
    # Both at once: 86 MB at 43 Gbit/s.
    both = [two_ways([Send(43e6, 10.0)]), two_ways([Send(43e6, 10.0)])]
    assert [times[0] for times in iteration_times(both, PAYLOAD, 1)] == pytest.approx([16.0, 16.0])
    # One small and slow: the other gets what is left, at its own demand while that is enough.
    uneven = [two_ways([Send(4.3e6, 10.0)]), two_ways([Send(43e6, 10.0)])]
    assert [times[0] for times in iteration_times(uneven, PAYLOAD, 1)] == pytest.approx([10.0, 10.0])


def test_flows_of_a_job_weigh_as_many_shares():
    short = [Send(43e6, 1.0), ComputePhase(100.0)]
    double, single = two_ways(short, weight=2.0), two_ways(short)
    assert [times[0] for times in iteration_times([double, single], PAYLOAD, 1)] == pytest.approx([112.0, 116.0])


# --- trials ----------------------------------------------------------------------------------------------------------


def test_two_vgg19_share_a_link_of_43_gbps():
    limits = fluid_limits(trial({"j1": ["s0", "s2"], "j2": ["s1", "s3"]}, DUMBBELL, HOSTS, ["tor0", "tor1"]))
    assert list(limits) == ["j1", "j2"]
    for each in limits.values():
        assert each.alone_ms == pytest.approx(293.0)
        assert each.fair_ms == pytest.approx(150 + 574.68e6 * 8 / 21.5e9 * 1e3)
        assert each.fair_ms == pytest.approx(363.83, abs=0.01)
        assert each.interleaved_ms == pytest.approx(293.0)


def test_jobs_on_links_of_their_own_do_not_meet():
    limits = fluid_limits(trial({"j1": ["s0", "s1"], "j2": ["s2", "s3"]}, DUMBBELL, HOSTS, ["tor0", "tor1"]))
    assert all(each.fair_ms == pytest.approx(293.0) for each in limits.values())


def test_a_ring_of_three_crosses_the_shared_link_once_a_direction():
    hosts = [*HOSTS, "s4"]
    spec = trial({"j1": ["s0", "s4", "s2"], "j2": ["s1", "s3"]}, [*DUMBBELL, ("s4", "tor0")], hosts, ["tor0", "tor1"])
    assert fluid_limits(spec)["j1"].fair_ms == pytest.approx(363.83, abs=0.01)


def test_three_jobs_of_a_third_of_communication_interleave_fully():
    jobs = [two_ways([ComputePhase(200.0), Send(400e6, 100.0)]) for _ in range(3)]
    times = iteration_times(best_offsets(jobs, PAYLOAD), PAYLOAD)
    assert [each[-1] for each in times] == pytest.approx([300.0] * 3)
    starts = sorted(job.start_ms for job in best_offsets(jobs, PAYLOAD))
    assert [later - earlier for earlier, later in pairwise(starts)] == pytest.approx([100.0, 100.0])


def test_communication_that_does_not_fit_cannot_interleave_fully():
    jobs = [two_ways([ComputePhase(100.0), Send(574.68e6, 143.0)]) for _ in range(2)]
    times = iteration_times(best_offsets(jobs, PAYLOAD), PAYLOAD)
    assert all(243.0 < each[-1] < 100 + 574.68e6 * 8 / 21.5e9 * 1e3 for each in times)


def test_jobs_of_many_streams_are_interleaved_as_well(monkeypatch):
    spec = trial({"j1": ["s0", "s2"], "j2": ["s1", "s3"]}, DUMBBELL, HOSTS, ["tor0", "tor1"])
    monkeypatch.setattr("roundabout.models.fluid.limits.LARGE", 0)
    assert [each.interleaved_ms for each in fluid_limits(spec, iterations=41).values()] == pytest.approx([293.0, 293.0])


def test_means_are_over_whole_unified_periods():
    # Periods of 200 and 300 ms on a link of 43 Gbit/s: what the jobs do repeats after two iterations and three.
    jobs = [two_ways([ComputePhase(50.0), Send(600e6, 150.0)]), two_ways([ComputePhase(150.0), Send(600e6, 150.0)])]
    for few, more in pairwise(unified_means_ms(jobs, PAYLOAD, iterations) for iterations in range(10, 15)):
        assert few == pytest.approx(more, rel=1e-9)
    often = iteration_times(jobs, PAYLOAD, iterations=300)
    assert unified_means_ms(jobs, PAYLOAD) == pytest.approx([sum(each) / len(each) for each in often], rel=0.01)
    halves = {sum(each[len(each) // 2 :]) / (len(each) - len(each) // 2)
              for each in (iteration_times(jobs, PAYLOAD, iterations)[0] for iterations in range(10, 15))}  # fmt: skip
    assert max(halves) > min(halves) * 1.01  # the second half depends on where it ends


def test_the_unified_period_holds_whole_iterations_of_each_job():
    slow, quick = two_ways([ComputePhase(300.0), Send(1e6, 20.0)]), two_ways([ComputePhase(100.0), Send(1e6, 20.0)])
    times = iteration_times([slow, quick], PAYLOAD, iterations=40)
    long, short = unified_period([0.0, 0.0], times)
    assert (long.stop - long.start, short.stop - short.start) == (3, 8)


def test_jobs_of_nearly_common_periods_interleave_by_waiting_for_each_other():
    spec = next(cell.spec for cell in load_experiment("unfair-table1").cells if cell.levels["group"] == "5")
    limits = fluid_limits(spec)
    assert [each.alone_ms for each in limits.values()] == pytest.approx([329, 329, 165])
    assert [each.interleaved_ms for each in limits.values()] == pytest.approx([330, 330, 165])
    assert limits["j1"].fair_ms == pytest.approx(403.3, abs=0.1)


@given(st.lists(st.integers(10, 1000), min_size=1, max_size=5))
def test_common_periods_are_no_shorter_than_alone_and_have_a_common_multiple(alone_ms):
    periods = common_periods_ms(alone_ms)
    assert all(own <= period * (1 + 1e-9) for own, period in zip(alone_ms, periods, strict=True))
    longest = periods[alone_ms.index(max(alone_ms))]
    turns = ([count * longest / period for period in periods] for count in range(1, 5))
    assert any(own == pytest.approx(list(map(round, own)), rel=1e-9) for own in turns)


in_ms = st.integers(50, 300)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(in_ms, in_ms), min_size=2, max_size=2))
def test_interleaved_jobs_are_between_a_common_start_and_alone(times):
    spec = trial({"j1": ["s0", "s2"], "j2": ["s1", "s3"]}, DUMBBELL, HOSTS, ["tor0", "tor1"])
    made = (two_phases(compute_ms, 4_000_000 * ms, ms) for compute_ms, ms in times)  # 32 Gbit/s of 43
    jobs = {
        name: job.model_copy(update={"profile": Profile.model_validate({"schema": 1, "name": name, **profile})})
        for (name, job), profile in zip(spec.jobs.items(), made, strict=True)
    }
    limits = fluid_limits(spec.model_copy(update={"jobs": jobs})).values()
    interleaved, fair = (
        sum(getattr(each, way) / each.alone_ms for each in limits) for way in ("interleaved_ms", "fair_ms")
    )
    assert 2 - 1e-9 <= interleaved <= fair + 1e-9


@settings(max_examples=10, deadline=None)
@given(phases, phases)
def test_together_two_jobs_carry_in_a_unified_period_what_it_says(first, second):
    jobs = [two_ways(first), two_ways(second)]
    means_ms = unified_means_ms(jobs, PAYLOAD, iterations=20)
    for own, mean_ms in zip((first, second), means_ms, strict=True):
        assert mean_ms >= sum(map(least_ms, own)) * (1 - 1e-9)
    carried = sum(
        sum(phase.size for phase in own if isinstance(phase, Send)) / mean_ms
        for own, mean_ms in zip((first, second), means_ms, strict=True)
    )
    assert carried <= PAYLOAD[LINK] * (1 + 1e-2)


# --- cross traffic ---------------------------------------------------------------------------------------------------


def test_cross_traffic_takes_its_load_on_its_way_and_in_its_direction():
    left = residual_of_loads(beside(ring(), s2=(["s0", "s1"], 10)))
    free = residual_of_loads(ring())
    taken = {edge: (free[edge] - left[edge]) / BYTES_PER_MS_OF_GBPS for edge in free}
    expected = {("s2", "tor"): 10, ("tor", "s0"): 5, ("tor", "s1"): 5}
    assert taken == pytest.approx(dict.fromkeys(free, 0) | expected)


def test_a_ring_is_as_fast_as_the_link_that_cross_traffic_shares():
    alone = fluid_limits(ring())["j1"]
    beside_20 = fluid_limits(beside(ring(), s2=(["s0"], 20)))["j1"]
    assert alone.fair_ms == pytest.approx(293)
    assert beside_20.fair_ms == pytest.approx(150 + 574.68e6 * 8 / 23e9 * 1e3)
    assert beside_20.alone_ms == beside_20.fair_ms == beside_20.interleaved_ms


def test_cross_traffic_elsewhere_changes_nothing():
    assert fluid_limits(beside(ring(), s0=(["s2"], 10)))["j1"].fair_ms == pytest.approx(293)


def test_a_job_that_is_left_nothing_never_ends_and_holds_up_nobody():
    two = trial({"j1": ["s0", "s1"], "j2": ["s2", "s3"]}, STAR, HOSTS, ["tor"])
    limits = fluid_limits(beside(two, s2=(["s0"], 43)))
    assert limits["j1"].fair_ms == limits["j2"].fair_ms == float("inf")  # s2 sends for j2 too
    limits = fluid_limits(beside(two, s1=(["s0"], 43)))
    assert limits["j1"].fair_ms == float("inf")
    assert limits["j2"].fair_ms == pytest.approx(293)


# --- jitter, and iterations that are held ----------------------------------------------------------------------------


def test_computing_takes_longer_in_iterations_that_are_stretched():
    job = two_ways(VGG19, stretches=(1.0, 1.1, 0.9))
    assert iteration_times([job], PAYLOAD, 6)[0] == pytest.approx([293, 308, 278, 293, 308, 278])


def test_held_iterations_begin_when_they_are_due_and_late_ones_at_once():
    timetable = Timetable(shift_ms=20, period_ms=300, threshold_ms=0.5)
    job = two_ways(VGG19, start_ms=20.0, timetable=timetable, stretches=(1.0, 1.1, 1.0, 1.0, 1.0))
    # Due at 20, 320, 620, 920 and 1220: the third is late by 8 ms, the fourth by 1 ms. Waiting counts.
    assert iteration_times([job], PAYLOAD, 5)[0] == pytest.approx([293, 315, 293, 293, 299])
