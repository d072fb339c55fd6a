# SPDX-License-Identifier: Apache-2.0
"""The engine for many hosts against the plain model: the same jobs, the same times."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.fluid import Course, Left
from roundabout.fluid.engine import Engine
from roundabout.fluid.jobs import Compute, FluidJob, send
from roundabout.fluid.mltcp import SHAPES, Factor
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import PATTERNS, transfers

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
    found = transfers(pattern, draw(st.integers(10**6, 10**8)), groups)
    return send(found, [way(hosts[each.sender], hosts[each.receiver]) for each in found], draw(st.floats(5, 60)))


@st.composite
def jobs(draw, growing=False):
    workers = draw(st.integers(2, 4))
    hosts = draw(st.lists(st.integers(0, HOSTS - 1), min_size=workers, max_size=workers))
    phases = draw(
        st.lists(
            st.one_of(st.builds(Compute, st.floats(1, 100)), sends(workers, hosts)), min_size=1, max_size=3
        ).filter(lambda each: any(isinstance(phase, Compute) for phase in each))
    )
    timetables = st.builds(
        Timetable, shift_ms=st.floats(0, 50), period_ms=st.floats(50, 300), threshold_ms=st.just(1.1)
    )
    factors = st.builds(Factor, st.sampled_from(list(SHAPES)), st.floats(0.1, 4.0))
    return FluidJob(
        tuple(phases),
        workers,
        weight=float(draw(st.integers(1, 4))),
        priority=draw(st.integers(0, 1)),
        start_ms=draw(st.floats(0, 100)),
        iterations=draw(st.integers(1, 4)),
        departs_ms=draw(st.one_of(st.none(), st.floats(150, 600))),
        factor=draw(st.one_of(st.none(), factors)) if growing else None,
        timetable=draw(st.one_of(st.none(), timetables)),
        stretches=tuple(draw(st.lists(st.floats(0.5, 1.5), min_size=1, max_size=3))),
    )


capacities = st.fixed_dictionaries({edge: st.floats(0.3 * RATE, RATE) for edge in EDGES})


def played(several, capacity, congested=1.0):
    """By job: times (workers, iterations, 4) as the plain model has them."""
    course = Course(several, Left.always(capacity), congested)
    for _ in course:
        pass
    return [np.array(workers).reshape(len(workers), -1, 4) for workers in course.iterations]


def ran(several, capacity, congested=1.0):
    engine = Engine(capacity, congested=congested)
    for name, job in enumerate(several):
        engine.add(str(name), job)
    left = set(map(str, range(len(several))))
    while left:
        left -= set(engine.run(1e9))
    return [engine.iterations(str(name))[:, :, :4] for name in range(len(several))]


def same(several, capacity, congested=1.0):
    for one, other in zip(played(several, capacity, congested), ran(several, capacity, congested), strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


@settings(deadline=None, max_examples=100)
@given(st.lists(jobs(), min_size=1, max_size=5), capacities)
def test_it_is_the_plain_model(several, capacity):
    same(several, capacity)


@settings(deadline=None, max_examples=60)
@given(st.lists(jobs(), min_size=2, max_size=5), capacities, st.floats(0.6, 0.99))
def test_it_is_the_plain_model_where_congested_links_carry_less(several, capacity, congested):
    same(several, capacity, congested)


@settings(deadline=None, max_examples=15)
@given(st.lists(jobs(growing=True), min_size=2, max_size=3), capacities)
def test_it_is_the_plain_model_where_weights_grow(several, capacity):
    same(several, capacity)
