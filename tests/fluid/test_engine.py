# SPDX-License-Identifier: Apache-2.0
"""The engine for many hosts against the plain model: the same jobs, the same times."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cffi import FFI
from hypothesis import given, settings, strategies as st

from roundabout.core import paths
from roundabout.models.fluid import Engine, EngineError, ResidualCapacity, iteration_times
from roundabout.models.fluid.contention import contended_groups
from roundabout.models.fluid.jobs import Barrier, ComputePhase, FluidJob, SendPhase, Stream, make_send_phase
from roundabout.models.fluid.mltcp import SHAPES, Factor
from roundabout.models.native_engine import open_library
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import PATTERNS, all_transfers
from tests.fluid.oracle import model
from tests.fluid.oracle.model import Simulation

pytestmark = pytest.mark.unit

RATE = 5e6
"""Of a host's link, bytes/ms."""

HOSTS = 6
TORS = (0, 0, 1, 1, 2, 2)


def way(a, b):
    """From host to host: up and down a tree of two levels; within a host over no link."""
    if a == b:
        return ()
    up, down = (f"h{a}", f"t{TORS[a]}"), (f"t{TORS[b]}", f"h{b}")
    if TORS[a] == TORS[b]:
        return (up, down)
    return (up, (f"t{TORS[a]}", "core"), ("core", f"t{TORS[b]}"), down)


EDGES = sorted({edge for a in range(HOSTS) for b in range(HOSTS) for edge in way(a, b)})


@st.composite
def sends(draw, workers, hosts):
    """A phase of some pattern among all workers, or among pairs of them."""
    whole = tuple(range(workers))
    groups = (whole,) if workers < 4 or draw(st.booleans()) else (whole[:2], whole[2:])
    even = all(len(group) % 2 == 0 for group in groups)
    pattern = draw(st.sampled_from(sorted(PATTERNS if even else PATTERNS.keys() - {"pairs"})))
    found = all_transfers(pattern, draw(st.integers(10**6, 10**8)), groups)
    return make_send_phase(
        found, [way(hosts[each.sender], hosts[each.receiver]) for each in found], draw(st.floats(5, 60))
    )


timetables = st.builds(Timetable, shift_ms=st.floats(0, 50), period_ms=st.floats(50, 300), threshold_ms=st.just(1.1))
factors = st.builds(Factor, st.sampled_from(list(SHAPES)), st.floats(0.1, 4.0))


@st.composite
def jobs(draw, growing=False):
    workers = draw(st.integers(2, 4))
    hosts = draw(st.lists(st.integers(0, HOSTS - 1), min_size=workers, max_size=workers))
    phases = [ComputePhase(draw(st.floats(1, 60))) if draw(st.booleans()) else None, draw(sends(workers, hosts))] * 2
    return FluidJob(
        tuple(phase for phase in phases[: draw(st.integers(2, 4))] if phase),
        workers,
        weight=float(draw(st.integers(1, 4))),
        priority=draw(st.integers(0, 1)),
        start_ms=draw(st.floats(0, 50)),
        iterations=draw(st.integers(1, 4)),
        departs_ms=draw(st.one_of(st.none(), st.floats(150, 600))),
        factor=draw(factors) if growing else None,
        timetable=None if growing else draw(st.one_of(st.none(), timetables)),
        stretches=tuple(draw(st.lists(st.floats(0.5, 1.5), min_size=1, max_size=3))),
    )


capacities = st.fixed_dictionaries({edge: st.floats(0.3 * RATE, RATE) for edge in EDGES})


def played(several, left, congested=1.0):
    """By job: times (workers, iterations, 4) as the plain model has them."""
    course = Simulation(several, left, congested)
    for _ in course:
        pass
    return [np.array(workers).reshape(len(workers), -1, 4) for workers in course.iterations]


def ran(several, left, congested=1.0):
    engine = Engine(left, congested=congested)
    for name, job in enumerate(several):
        engine.add(str(name), job)
    engine.run_to_end()
    return [engine.iterations(str(name))[:, :, :4] for name in range(len(several))]


def same(several, left, congested=1.0):
    for one, other in zip(played(several, left, congested), ran(several, left, congested), strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


quick = settings(deadline=None, max_examples=40)


@quick
@given(st.lists(jobs(), min_size=1, max_size=5), capacities)
def test_engine_equals_python_model(several, capacity):
    same(several, ResidualCapacity.constant(capacity))


endless_jobs = jobs().map(lambda job: replace(job, priority=0))
"""Jobs that run for ever side by side: one of a higher priority could stop the others."""


@quick
@given(st.lists(endless_jobs, min_size=1, max_size=4), capacities)
def test_steady_times_equal_the_python_models(several, capacity):
    expected = model.iteration_times(several, capacity, 3)
    for one, other in zip(expected, iteration_times(several, capacity, 3), strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


ample_capacities = st.fixed_dictionaries({edge: st.floats(RATE, 20 * RATE) for edge in EDGES})


@quick
@given(st.lists(endless_jobs, min_size=1, max_size=5), ample_capacities)
def test_jobs_take_as_long_in_their_groups_as_among_all_jobs(several, capacity):
    everyone = {str(place): job for place, job in enumerate(several)}
    groups = contended_groups(everyone, capacity)
    assert sorted(name for group in groups for name in group) == sorted(everyone)
    among_all = dict(zip(everyone, iteration_times(several, capacity, 3), strict=True))
    for group in groups:
        for name, times in zip(group, iteration_times(tuple(group.values()), capacity, 3), strict=True):
            assert times[:3] == pytest.approx(among_all[name][:3], rel=1e-6, abs=1e-6)


def test_jobs_that_fit_on_their_links_are_groups_of_their_own_without_links():
    ring = make_send_phase(all_transfers("ring", 10**7, ((0, 1, 2),)), [way(0, 2), way(2, 4), way(4, 0)], 20)
    job = FluidJob((ComputePhase(10), ring), 3)
    groups = contended_groups({"a": job, "b": job}, dict.fromkeys(EDGES, RATE))
    assert [list(group) for group in groups] == [["a"], ["b"]]
    assert all(not own.edges and len(own.streams) == 1 for group in groups for own in group.values())
    (together,) = contended_groups({"a": job, "b": job}, dict.fromkeys(EDGES, RATE / 10))
    assert list(together) == ["a", "b"]


@quick
@given(st.lists(jobs(), min_size=2, max_size=4), capacities, st.floats(0.6, 0.99))
def test_engine_equals_python_model_if_congested_links_carry_less(several, capacity, congested):
    same(several, ResidualCapacity.constant(capacity), congested)


@st.composite
def lefts(draw):
    """What cross traffic leaves: nothing of some links in some steps, all of all of them in the end."""
    figures = st.lists(st.one_of(st.just(0.0), st.floats(1.0, RATE)), max_size=40)
    taken = draw(st.dictionaries(st.sampled_from(EDGES), figures, max_size=5))
    return ResidualCapacity({edge: np.array([*taken.get(edge, ()), RATE]) for edge in EDGES}, draw(st.floats(1, 12)))


@settings(deadline=None, max_examples=60)
@given(st.lists(jobs(), min_size=1, max_size=4), lefts(), st.sampled_from([1.0, 0.9]))
def test_engine_equals_python_model_if_capacity_changes(several, left, congested):
    same(several, left, congested)


@settings(deadline=None, max_examples=20)
@given(st.lists(jobs(growing=True), min_size=2, max_size=3), capacities)
def test_engine_equals_python_model_if_weights_grow(several, capacity):
    same(several, ResidualCapacity.constant(capacity))


@settings(deadline=None, max_examples=10)
@given(st.lists(jobs(growing=True), min_size=2, max_size=3), lefts())
def test_engine_equals_python_model_if_weights_grow_beside_traffic(several, left):
    same(several, left)


def test_weights_grow_on_after_two_events_that_are_hardly_apart():
    """The second event came 5e-8 ms after the first, and the rates of all others then stayed until the next one."""
    across, back = way(0, 2), way(2, 0)
    ends = 7.5e6, 7.5e6 + 0.075  # half of the link back, each

    def job(*streams):
        awaits = tuple(range(len(streams)))
        return FluidJob((SendPhase(streams, 5.0, (Barrier((0, 1), awaits),)),), 2, iterations=1, factor=Factor())

    two = [job(Stream(0, 1, across, 2e7)), job(Stream(0, 1, across, 1.5e7), *(Stream(1, 0, back, end) for end in ends))]
    same(two, ResidualCapacity.constant(dict.fromkeys(EDGES, 1.5e6)))


@pytest.mark.proof
@settings(deadline=None, max_examples=1500)
@given(st.lists(jobs(), min_size=2, max_size=6), capacities, st.sampled_from([1.0, 0.92]))
def test_engine_equals_python_model_at_length(several, capacity, congested):
    same(several, ResidualCapacity.constant(capacity), congested)


@pytest.mark.proof
@settings(deadline=None, max_examples=1500)
@given(st.lists(jobs(), min_size=1, max_size=6), lefts(), st.sampled_from([1.0, 0.92]))
def test_engine_equals_python_model_at_length_if_capacity_changes(several, left, congested):
    same(several, left, congested)


@pytest.mark.proof
@settings(deadline=None, max_examples=300)
@given(
    st.lists(jobs(growing=True), min_size=2, max_size=5), st.one_of(capacities.map(ResidualCapacity.constant), lefts())
)
def test_engine_equals_python_model_at_length_if_weights_grow(several, left):
    same(several, left)


WIDE = dict.fromkeys(EDGES, RATE)


def one_way(a, b, compute_ms=10.0, alone_ms=20.0, **more):
    (found,) = all_transfers("one-to-all", int(alone_ms * RATE), ((0, 1),))
    return FluidJob((ComputePhase(compute_ms), make_send_phase([found], [way(a, b)], alone_ms)), workers=2, **more)


@quick
@given(jobs(), st.floats(1, 30), capacities)
def test_a_job_on_other_links_changes_nothing(job, compute_ms, capacity):
    """A pipeline's backlogs, above all, which once were seen at the next event of anyone."""
    own = replace(job, departs_ms=None)
    apart = (("x", "y"),)
    found = all_transfers("one-to-all", int(RATE), ((0, 1),))
    other = FluidJob((ComputePhase(compute_ms), make_send_phase(found, [apart], 1.0)), workers=2)
    alone, beside = (
        model.iteration_times(each, capacity | dict.fromkeys(apart, RATE), own.iterations)[0][: own.iterations]
        for each in ([own], [own, other])
    )
    assert beside == pytest.approx(alone, rel=1e-9)


def test_jobs_come_and_go_while_others_run():
    engine = Engine(ResidualCapacity.constant(WIDE))
    engine.add("first", one_way(0, 2, iterations=3))
    assert engine.run(15.0) == ()
    assert engine.now_ms == 15.0
    engine.add("second", one_way(0, 3, compute_ms=0.0, start_ms=15.0))
    assert engine.run(25.0) == ()
    engine.stop("second")  # both had half of the link for 10 ms
    assert engine.run(1e6) == ("first",)
    assert engine.now_ms == pytest.approx(95.0)
    assert engine.completed("first") == 3
    assert engine.completed("second") == 0
    found = engine.iterations("first")
    assert found.shape == (2, 3, 6)
    assert found[0, :, :4] == pytest.approx(np.array([[0, 10, 35, 0], [35, 45, 65, 0], [65, 75, 95, 0]]))
    assert found[:, 0, 4:] == pytest.approx(np.array([[20 * RATE, 0], [0, 20 * RATE]]))


def test_replaced_phases_count_from_the_next_phase_on():
    """Three iterations of 10 ms of computing and 20 ms of sending, which the second link halves from the second on."""
    engine = Engine(ResidualCapacity.constant({("a", "b"): 100.0, ("a", "c"): 50.0}))

    def phases(to):
        return ComputePhase(10.0), SendPhase((Stream(0, 0, (("a", to),), 2000.0),), 20.0, (Barrier((0,), (0,)),))

    engine.add("j", FluidJob(phases("b"), 1, iterations=3))
    engine.run(15.0)
    engine.replace("j", phases("c"))
    engine.run_to_end()
    assert np.diff(engine.iterations("j")[0, :, (0, 2)], axis=0).ravel() == pytest.approx([30, 50, 50])
    with pytest.raises(EngineError, match="differ in number"):
        engine.replace("j", phases("c")[:1])


def test_workers_that_leave_phases_one_by_one_keep_theirs_until_the_iteration_ends():
    """The second worker sends from 20 ms on, for 20 ms; from the second iteration on at half of the rate."""
    engine = Engine(ResidualCapacity.constant({("a", "b"): 100.0, ("a", "c"): 50.0}))

    def phases(to):
        wait = SendPhase((Stream(1, 1, (), 1.0),), 10.0, (Barrier((1,), (0,)),))
        streams = Stream(0, 0, (), 1.0), Stream(1, 1, (("a", to),), 2000.0)
        return ComputePhase(10.0), wait, SendPhase(streams, 20.0, (Barrier((0, 1), (0, 1)),))

    engine.add("j", FluidJob(phases("b"), 2, iterations=3))
    engine.run(15.0)
    engine.replace("j", phases("c"))
    engine.run_to_end()
    assert np.diff(engine.iterations("j")[0, :, (0, 2)], axis=0).ravel() == pytest.approx([40, 60, 60])
    with pytest.raises(EngineError, match="leave the last one by one"):
        engine.replace("j", (*phases("b")[::2], phases("b")[1]))


def test_a_job_that_departs_by_itself_is_named():
    engine = Engine(ResidualCapacity.constant(WIDE))
    engine.add("j", one_way(0, 2, departs_ms=70.0))
    assert engine.run(1e6) == ("j",)
    assert (engine.now_ms, engine.completed("j")) == (70.0, 2)


def test_the_engine_runs_until_all_jobs_that_it_still_has_end():
    engine = Engine(ResidualCapacity.constant(WIDE))
    engine.add("ended", one_way(0, 2, iterations=1))
    assert engine.run(1e6) == ("ended",)
    for name, iterations in (("stopped", 9), ("short", 1), ("long", 3)):
        engine.add(name, one_way(0, 2, iterations=iterations, start_ms=engine.now_ms))
    engine.stop("stopped")
    engine.run_to_end()
    assert [engine.completed(name) for name in ("ended", "stopped", "short", "long")] == [1, 0, 1, 3]


def test_the_engine_samples_carried_bytes():
    engine = Engine(ResidualCapacity.constant(WIDE), sample_ms=5.0)
    engine.add("j", one_way(0, 2, iterations=1))
    engine.run(32.0)
    engine.run(32.0)
    carried = engine.carried()
    for edge in EDGES:
        sent = np.array([0, 0, 0, 5, 10, 15, 20]) if edge in way(0, 2) else np.zeros(7)
        assert carried[edge] == pytest.approx(sent * RATE)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (one_way(0, 2), "job j: found a second one of this name, expected one"),
        (one_way(0, 2, start_ms=3.0), "job late: found a start at 3 ms, expected 5 ms or later"),
    ],
)
def test_the_engine_refuses_jobs_that_it_cannot_play(job, message):
    engine = Engine(ResidualCapacity.constant(WIDE))
    engine.add("j", one_way(0, 2))
    engine.run(5.0)
    with pytest.raises(EngineError, match=message):
        engine.add(message.split()[1][:-1], job)


def test_unknown_links_and_unsampled_bytes_are_refused():
    engine = Engine(ResidualCapacity.constant({("a", "b"): RATE}))
    with pytest.raises(EngineError, match="job j: found a stream from .* expected links that there are"):
        engine.add("j", one_way(0, 2))
    with pytest.raises(EngineError, match="found an engine without sample_ms"):
        engine.carried()


def test_an_engine_older_than_its_sources_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    source = tmp_path / "roundabout/models/fluid/native/shares.cpp"
    source.parent.mkdir(parents=True)
    source.touch()
    library = tmp_path / "libfluid.so"
    library.write_bytes((Path(__file__).parents[2] / "build/lib/libfluid.so").read_bytes())
    open_library("fluid", "libfluid.so", FFI())
    os.utime(source, (time.time() + 60,) * 2)
    with pytest.raises(EngineError, match=r"older than its sources: libfluid\.so"):
        open_library("fluid", "libfluid.so", FFI())
