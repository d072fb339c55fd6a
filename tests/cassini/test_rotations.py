# SPDX-License-Identifier: Apache-2.0
"""Scores and time-shifts as the interleaving thesis and HotNets'22 have them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import Arc, CassiniError, Circle, circle_of, rotate, unify
from roundabout.spec import load_profile

pytestmark = pytest.mark.unit


def job(name: str, period_ms: float, *arcs: tuple[float, float, float]) -> Circle:
    return Circle(name, period_ms, tuple(Arc(*arc) for arc in arcs))


def test_the_job_of_40_ms_is_rotated_by_30_degrees():
    """Figure 4.5: 10 of 120 ms. Its phases cannot be read off; with these no other shift below 30 ms separates them."""
    found = rotate(unify([job("j2", 60, (0, 10, 40)), job("j1", 40, (0, 10, 40))]), 50, precision_deg=5)
    assert found.degrees == (0, 30) and found.shifts_ms == (0, 10)
    assert (found.score, found.is_best) == (1, True)
    assert found.score_unrotated == pytest.approx(1 - 30 / 50 * 10 / 120)


def test_jobs_that_fit_beside_each_other_stay():
    found = rotate(unify([job("j1", 100, (0, 90, 20)), job("j2", 100, (0, 90, 30))]), 50)
    assert (found.shifts_ms, found.score) == ((0, 0), 1)


def test_hotnets_lets_one_job_into_each_sector():
    """What co-exists by its demand, collides by HotNets'22's criterion."""
    circles = unify([job("j1", 100, (0, 60, 10)), job("j2", 100, (0, 60, 10))])
    assert rotate(circles, 50).score == 1
    strict = rotate(circles, 50, precision_deg=3.6, strict=True)
    assert strict.score == pytest.approx(0.8) and strict.is_best
    halves = rotate(unify([job("j1", 100, (0, 50, 60)), job("j2", 100, (0, 50, 1))]), 50, strict=True)
    assert (halves.score, halves.degrees) == (1, (0, 180))


def test_a_score_can_be_negative():
    whole = [job(f"j{place}", 100, (0, 100, 50)) for place in range(3)]
    found = rotate(unify(whole), 50)
    assert (found.score, found.is_best) == (-1, True)


def test_a_job_alone_has_room_up_to_its_own_demand():
    assert rotate(unify([job("j1", 100, (20, 60, 50))]), 50).score == 1
    above = rotate(unify([job("j1", 100, (20, 60, 60))]), 50, precision_deg=3.6)
    assert (above.shifts_ms, above.score) == ((0,), pytest.approx(1 - 10 / 50 * 0.4))


def test_a_job_that_never_sends_fits_anywhere():
    found = rotate(unify([job("busy", 100, (0, 100, 50)), job("quiet", 50, (10, 10, 50), (20, 30, 0))]), 50)
    assert (found.shifts_ms, found.score) == ((0, 0), 1)


def test_snapshot_2_needs_no_strict_interleaving():
    """Table 4.3 and Figure 4.16(b): ResNet50 co-exists with both VGGs, which alternate."""
    names = ("vgg19-1400", "vgg16-1700", "resnet50-1600")
    found = rotate(unify([circle_of(load_profile(name)) for name in names]), 50)
    assert found.unified.turns == (1, 1, 2)
    assert (found.score, found.is_best) == (1, True)
    assert found.shifts_ms[1] == pytest.approx(158, abs=5)


@pytest.mark.parametrize(
    ("pair", "fits"),
    [
        (("gpt1-data", "gpt2-pipeline"), True),
        (("gpt3-hybrid", "dlrm-2000"), True),
        (("gpt3-hybrid", "gpt2-pipeline"), False),
        (("gpt3-tensor", "gpt2-pipeline"), False),
        (("gpt1-data", "dlrm-2000"), False),
    ],
)
def test_jobs_of_several_phases_fit_as_section_4_5_4_says(pair, fits):
    found = rotate(unify([circle_of(load_profile(name)) for name in pair]), 43)
    assert (found.score == 1) == fits


@pytest.mark.parametrize(
    ("capacity", "precision"), [(0, None), (-1, None), (math.inf, None), (50, 0), (50, 0.01), (50, 361)]
)
def test_an_invalid_capacity_or_precision_is_refused(capacity, precision):
    with pytest.raises(CassiniError, match="expected (more than 0|0.1 at least)"):
        rotate(unify([job("j1", 100, (0, 50, 1))]), capacity, precision)


ARC = st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 60)).map(lambda arc: (*sorted(arc[:2]), arc[2]))


def exactly(found, circles, capacity):
    """The score of found rotations over continuous time: demand is constant between edges."""
    p = found.unified.perimeter_ms
    edges = {0.0, p}
    shifted = list(zip(circles, found.unified.iterations_ms, found.degrees, strict=True))
    for circle, own_ms, degrees in shifted:
        for turn in range(round(p / own_ms)):
            for arc in circle.arcs:
                for at in (arc.begin_ms, arc.end_ms):
                    edges.add((turn * own_ms + at * own_ms / circle.iteration_ms + degrees / 360 * p) % p)
    ordered = np.array(sorted(edges))
    middles, lengths = (ordered[:-1] + ordered[1:]) / 2, np.diff(ordered)
    demand = sum(
        circle.demand_gbps((middles - degrees / 360 * p) % own_ms * circle.iteration_ms / own_ms)
        for circle, own_ms, degrees in shifted
    )
    return 1 - float(np.maximum(demand - capacity, 0) @ lengths) / p / capacity


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(ARC, max_size=2), min_size=1, max_size=3), st.sampled_from([30, 50, 80]), st.booleans())
def test_sectors_cost_no_more_accuracy_than_is_said(jobs, capacity, coarse):
    periods = (100, 200, 50)
    circles = [
        job(f"j{place}", periods[place], *((b / 100 * periods[place], e / 100 * periods[place], d) for b, e, d in arcs))
        for place, arcs in enumerate(jobs)
    ]
    found = rotate(unify(circles), capacity, 5 if coarse else None)
    assert found.is_best
    assert found.score == pytest.approx(exactly(found, circles, capacity), abs=found.score_error + 1e-6)


@settings(deadline=None, max_examples=50)
@given(st.lists(ARC, min_size=2, max_size=2), st.floats(0, 100))
def test_shifts_do_what_rotations_do(arcs, at):
    """Delaying each job by its time-shift gives the demands after rotation."""
    circles = [
        job("j1", 100, arcs[0]),
        job("j2", 50, tuple(x / 2 if place < 2 else x for place, x in enumerate(arcs[1]))),
    ]
    found = rotate(unify(circles), 40, 5)
    middles = (np.arange(found.sectors) + 0.5) * found.unified.perimeter_ms / found.sectors
    for circle, shift, row in zip(circles, found.shifts_ms, found.rotated_gbps, strict=True):
        shifted = circle.demand_gbps(np.round((middles - shift) % circle.iteration_ms, 9))
        assert (
            np.count_nonzero(np.abs(shifted - row) > 1e-5) <= 2 * len(circle.arcs) * found.sectors // 72
        )  # edges only
