# SPDX-License-Identifier: Apache-2.0
"""Patterns, groups and a trial's timeline in the fluid model."""

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.fluid import ResidualCapacity, fluid_jobs, iteration_times, residual_of_loads
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS
from roundabout.models.fluid.jobs import ComputePhase, FluidJob, make_send_phase
from roundabout.spec.patterns import PATTERNS, all_transfers
from tests.fluid.fluid_trials import DUMBBELL, HOSTS, trial
from tests.fluid.oracle.model import Simulation

pytestmark = pytest.mark.unit

RATE = 40 * BYTES_PER_MS_OF_GBPS
STAR = {edge: RATE for worker in range(8) for edge in ((f"w{worker}", "tor"), ("tor", f"w{worker}"))}


def phase(pattern, size, alone_ms, workers=4, groups=None):
    """A phase among workers w0, w1, ... of one switch."""
    found = all_transfers(pattern, size, groups or (tuple(range(workers)),))
    paths = [((f"w{each.sender}", "tor"), ("tor", f"w{each.receiver}")) for each in found]
    return make_send_phase(found, paths, alone_ms)


def times_ms(*phases, workers=4, capacity=STAR, iterations=4, **job):
    return iteration_times([FluidJob(phases, workers, **job)], capacity, iterations)[0]


@pytest.mark.parametrize(
    ("pattern", "times"),
    [("ring", 1), ("tree", 2), ("pairs", 1), ("all-to-all", 1), ("one-to-all", 3), ("all-to-one", 3)],
)
def test_the_busiest_link_sets_a_patterns_time(pattern, times):
    """Five times the bytes that a link carries in `alone_ms`; from one to three, or three to one, thrice that.

    The busiest worker of a tree sends half of the bytes to its parent and to each of two children, and half of them in
    the other tree.
    """
    took = times_ms(ComputePhase(10), phase(pattern, int(5 * RATE), 1.0))
    assert took == pytest.approx([10 + 5 * times] * 4)


def test_a_pipeline_takes_no_longer_than_its_slowest_link():
    """Bytes are passed on as they come: three stages one after the other would take 15 ms."""
    assert times_ms(phase("pipeline", int(5 * RATE), 1.0), ComputePhase(1))[0] == pytest.approx(6.0)
    narrow = STAR | {("tor", "w1"): RATE / 2}
    # Stage 1 gets half the rate; what passes on is no faster, though its own links are free.
    assert times_ms(phase("pipeline", int(5 * RATE), 1.0), capacity=narrow)[0] == pytest.approx(10.0)


def test_a_pipelines_unused_bandwidth_goes_to_other_jobs():
    """The second hop of a line is slowed down by its first: a job that shares only the second gets the rest."""
    narrow = STAR | {("tor", "w1"): RATE / 4}
    line = FluidJob((phase("pipeline", int(10 * RATE), 1.0, workers=3),), workers=3)
    passing = (("w5", "tor"), ("tor", "w2"))
    other = FluidJob(
        (make_send_phase(all_transfers("one-to-all", int(9 * RATE), ((0, 1),)), [passing], 1.0),), workers=2
    )
    took = iteration_times([line, other], narrow, 1)
    assert took[1][0] == pytest.approx(12.0)  # at three quarters of w2's link
    assert took[0][0] == pytest.approx(40.0)


def test_groups_go_on_by_themselves():
    """One group's link is slow: the other one's workers are done early, and wait where they meet."""
    groups = ((0, 1), (2, 3))
    slow = STAR | {("w0", "tor"): RATE / 4}
    tensors, gradients = (
        phase("ring", int(RATE), 1.0, groups=groups),
        phase("ring", int(RATE), 1.0, groups=((0, 2), (1, 3))),
    )
    job = FluidJob((tensors, ComputePhase(1.0), gradients), workers=4, iterations=1)
    course = Simulation([job], ResidualCapacity.constant(slow))
    for _ in course:
        pass
    compute_ends = [worker[0].compute_end_ms for worker in course.iterations[0]]
    assert compute_ends == [0, 0, 0, 0]
    assert [worker[0].end_ms for worker in course.iterations[0]] == pytest.approx([9.0, 6.0, 9.0, 6.0])


def test_a_sender_is_at_most_one_phase_ahead_of_its_receiver():
    line = phase("pipeline", int(RATE), 1.0, groups=((0, 1),))
    busy = phase("pipeline", int(5 * RATE), 1.0, groups=((1, 2),))  # the receiver has another 5 ms to do
    took = times_ms(line, busy, workers=3)
    assert took == pytest.approx([6.0, 5.0, 5.0, 5.0])  # the next iteration's line is sent meanwhile


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(PATTERNS)), st.integers(10**6, 10**9), st.floats(1, 100)),
        min_size=1,
        max_size=3,
    )
)
def test_every_byte_is_carried_once(phases):
    job = FluidJob(tuple(phase(*each) for each in phases), workers=4, iterations=2)
    carried = sum(
        rate.bytes_per_ms * (interval.end_ms - interval.begin_ms)
        for interval in Simulation([job], ResidualCapacity.constant(STAR))
        for rate in interval.rates
    )
    sent = sum(each.bytes for pattern, size, _ in phases for each in all_transfers(pattern, size, ((0, 1, 2, 3),)))
    assert carried == pytest.approx(2 * sent, rel=1e-6)


@settings(max_examples=60)
@given(st.sampled_from(sorted(PATTERNS)), st.integers(10**6, 10**9), st.floats(1, 100))
def test_no_link_carries_more_than_it_can(pattern, size, alone_ms):
    jobs = [FluidJob((phase(pattern, size, alone_ms), ComputePhase(2.0)), workers=4, iterations=2)] * 2
    for interval in Simulation(jobs, ResidualCapacity.constant(STAR)):
        for edge in STAR:
            assert sum(each.bytes_per_ms for each in interval.rates if edge in each.stream.path) <= RATE * (1 + 1e-9)


# --- a trial's timeline ----------------------------------------------------------------------------------------------


def vgg19_pair(**j2):
    """Two jobs that share a link; `j2` changes the second."""
    spec = trial({"j1": ["s0", "s2"], "j2": ["s1", "s3"]}, DUMBBELL, HOSTS, ["tor0", "tor1"])
    jobs = spec.jobs | {"j2": spec.jobs["j2"].model_copy(update=j2)}
    return spec.model_copy(update={"jobs": jobs})


def course_of(spec):
    jobs = fluid_jobs(spec)
    course = Simulation(list(jobs.values()), ResidualCapacity.constant(residual_of_loads(spec)))
    for _ in course:
        pass
    return dict(zip(jobs, course.iterations, strict=True))


def lasted_ms(worker):
    return [each.end_ms - each.start_ms for each in worker]


def test_a_job_has_the_whole_link_before_and_after_another_job():
    done = course_of(vgg19_pair(arrives_ms=3 * 293.0, departs_ms=6 * 293.0))
    times = lasted_ms(done["j1"][0])
    fair_ms = 150 + 574.68e6 * 8 / 21.5e9 * 1e3
    assert times[:5] == pytest.approx([293.0] * 3 + [fair_ms] * 2)
    assert times[6:] == pytest.approx([293.0] * 4)
    assert len(times) == 10
    # It arrived with j1's fourth iteration; its third of 364 ms is cut off.
    assert [lasted_ms(worker) for worker in done["j2"]] == [pytest.approx([fair_ms] * 2)] * 2
    assert done["j2"][0][0].start_ms == pytest.approx(3 * 293.0)


def test_each_job_runs_its_own_iterations():
    done = course_of(vgg19_pair(iterations=3))
    assert [len(worker) for worker in done["j2"]] == [3, 3]
    assert lasted_ms(done["j1"][0])[-1] == pytest.approx(293.0)


def test_a_time_shift_moves_a_job_from_its_arrival():
    done = course_of(vgg19_pair(arrives_ms=100.0, start_offset_ms=50.0))
    assert done["j2"][1][0].start_ms == 150.0


def test_rings_take_what_they_took_before_there_were_other_patterns():
    """Frozen: computed by the model that had rings only."""
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")]
    capacity = {
        edge: 43 * BYTES_PER_MS_OF_GBPS * factor for edge, factor in zip(edges, (1, 0.6, 0.8, 0.5), strict=True)
    }
    paths = [(edges[0],), (edges[1], edges[2]), (edges[2],)]
    first = make_send_phase(all_transfers("ring", 500_000_000, ((0, 1, 2),)), paths, 120.0)
    second = make_send_phase(all_transfers("ring", 300_000_000, ((0, 1),)), [(edges[0], edges[1]), (edges[3],)], 60.0)
    jobs = [
        FluidJob((ComputePhase(130.0), first), workers=3, weight=2.0),
        FluidJob((second, ComputePhase(75.0)), workers=2, start_ms=40.0),
    ]
    found = [times[:4] for times in iteration_times(jobs, capacity, 4)]
    assert found == [pytest.approx(each, rel=1e-9) for each in FROZEN]


FROZEN = [
    [362.5581395348837, 362.5581395348837, 362.5581395348838, 362.5581395348836],
    [186.62790697674419, 258.64341085271315, 323.06201550387595, 260.50387596899213],
]
