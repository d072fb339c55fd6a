# SPDX-License-Identifier: Apache-2.0
"""Circles: what is printed of them, and how iteration times are made to fit a whole number of times."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import Arc, CassiniError, Circle, circle_of, unify
from roundabout.spec import load_profile

pytestmark = pytest.mark.unit

PERIODS = st.lists(st.integers(50, 1500).map(lambda tenths: tenths / 10), min_size=1, max_size=4)


def circles(*periods_ms: float) -> list[Circle]:
    return [Circle(f"j{place}", period, (Arc(0, period / 4, 30),)) for place, period in enumerate(periods_ms)]


def test_vgg16_computes_for_199_degrees():
    """HotNets'22, Figure 3: 141 of 255 ms, printed as 200 degrees."""
    circle = circle_of(load_profile("vgg16-fig3"))
    assert circle.iteration_ms == 255
    assert [(arc.begin_ms, arc.end_ms) for arc in circle.arcs] == [(141, 255)]
    assert circle.degrees(141) == pytest.approx(199, abs=0.1)


def test_jobs_of_40_and_60_ms_meet_on_a_circle_of_120():
    unified = unify(circles(40, 60))
    assert (unified.perimeter_ms, unified.turns) == (120, (3, 2))
    assert unified.errors == (0, 0) and unified.drifts_ms == (0, 0)


def test_several_up_phases_keep_their_demands():
    circle = Circle("gpt", 100, (Arc(0, 10, 5), Arc(20, 20, 99), Arc(30, 50, 25), Arc(40, 60, 10)))
    at_ms = np.array([0, 9.9, 10, 20, 30, 40, 50, 60])
    assert circle.demand_gbps(at_ms).tolist() == [5, 5, 0, 0, 25, 35, 10, 0]


def test_phases_without_length_leave_no_trace(tmp_path):
    path = tmp_path / "odd.yaml"
    path.write_text(
        "name: odd\nmodel: none\nphases:\n"
        "  - {name: nothing, compute_ms: 0, source: made up}\n"
        "  - {name: send, bytes: 1_000_000, alone_ms: 10, source: made up}\n"
        "  - {name: more, compute_ms: 0, source: made up}\n"
    )
    circle = circle_of(load_profile(str(path)))
    assert (circle.iteration_ms, circle.arcs) == (10, (Arc(0, 10, 0.8),))
    empty = Circle("empty", 10, (Arc(5, 5, 50),))
    assert empty.variation_gbps == 0 and not empty.demand_gbps(np.arange(10.0)).any()


@settings(deadline=None, max_examples=150)
@given(PERIODS, st.sampled_from([0.002, 0.01, 0.03]))
def test_a_unified_circle_keeps_its_bounds_and_none_is_shorter(periods, error):
    try:
        unified = unify(circles(*periods), error=error, most_turns=12)
    except CassiniError:
        unified = None
    else:
        assert max(map(abs, unified.errors)) <= error * (1 + 1e-9)
        assert max(unified.turns) <= 12 and math.gcd(*unified.turns) == 1
        assert unified.drifts_ms == pytest.approx(
            [turns * (own - ms) for turns, own, ms in zip(unified.turns, unified.iterations_ms, periods, strict=True)],
            abs=1e-9,
        )
    longest = periods.index(max(periods))
    fewer = unified.turns[longest] if unified else 13
    for turns in itertools.product(range(1, 13), repeat=len(periods)) if len(periods) < 4 else ():
        around = [count * period for count, period in zip(turns, periods, strict=True)]
        if turns[longest] < fewer:
            assert (max(around) - min(around)) / (max(around) + min(around)) > error


def test_no_small_common_multiple_is_refused_by_name():
    with pytest.raises(CassiniError, match=r"no common multiple .*j0 10 ms, j1 990 ms.*within 32 iterations.*1 %"):
        unify(circles(10, 990))


@pytest.mark.parametrize("arc", [Arc(-1, 5, 1), Arc(5, 4, 1), Arc(0, 11, 1), Arc(0, 5, -1), Arc(0, 5, math.inf)])
def test_an_arc_off_its_circle_is_refused_by_name(arc):
    with pytest.raises(CassiniError, match="lonely: found an Up phase"):
        Circle("lonely", 10, (arc,))


def test_iterations_look_alike_where_they_are_whole_sectors():
    unified = unify(circles(40, 60))
    assert unified.sectors(5) == 72
    assert unified.sectors() == 216  # 72 for the iteration of 40 ms
    assert [demand.size for demand in unified.demands_gbps(72)] == [24, 36]
    seven = unify(circles(50, 70, 110))  # 77, 55 and 35 turns are none; the smallest that fit within 1 %
    assert all(seven.sectors() >= 72 * turns for turns in seven.turns)


def test_a_widened_circle_has_the_most_within_reach():
    circle = Circle("j", 100.0, (Arc(0, 10, 30.0), Arc(10, 20, 10.0), Arc(50, 50, 99.0), Arc(80, 90, 20.0)))
    wide = circle.widen(5.0, 7.0)
    at_ms = np.arange(0.25, 100.0, 0.5)
    within = [circle.demand_gbps((at_ms + off) % 100.0) for off in np.arange(-7.0, 5.25, 0.5)]
    assert wide.demand_gbps(at_ms).tolist() == np.max(within, axis=0).tolist()
    assert circle.widen(80.0, 120.0).demand_gbps(at_ms).tolist() == [30.0] * len(at_ms)
