# SPDX-License-Identifier: Apache-2.0
"""Links that the same jobs share: one rotation for all, the best by their mean score."""

from statistics import fmean

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import (
    Arc,
    Candidate,
    Circle,
    SharedLink,
    rank_placements,
    rotate,
    rotate_bundle,
    unify,
    with_most_room,
)

pytestmark = pytest.mark.unit

arcs = st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(10, 50))


def circle(job, period_ms, arc):
    begin, up, gbps = arc
    return Circle(job, period_ms, (Arc(begin * period_ms / 12, (begin + up) * period_ms / 12, gbps),))


@st.composite
def bundles(draw, jobs=3):
    """One to three links of the same jobs, with demands and a capacity of their own."""
    periods = draw(st.lists(st.sampled_from([60, 120]), min_size=jobs, max_size=jobs))
    return [
        SharedLink(
            tuple(circle(f"j{place}", period, draw(arcs)) for place, period in enumerate(periods)),
            draw(st.sampled_from([30.0, 50.0])),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]


@settings(deadline=None, max_examples=60)
@given(bundles(), st.integers(1, 3))
def test_equal_links_are_rotated_as_one_of_them(links, times):
    link = links[0]
    alone = rotate(unify(link.circles), link.capacity_gbps)
    for found in rotate_bundle([link] * times):
        assert (found.steps, found.score, found.score_bound) == (alone.steps, alone.score, alone.score_bound)


@settings(deadline=None, max_examples=60)
@given(bundles(jobs=2))
def test_other_links_are_rotated_alike_with_the_best_mean_score(links):
    found = rotate_bundle(links, precision_deg=15)
    assert len({each.steps for each in found}) == 1
    first = found[0]
    sector_ms = first.unified.perimeter_ms / first.sectors
    shifts = [(0.0, step * sector_ms) for step in range(first.sectors)]
    best = max(fmean(each.score_at(each_shifts) for each in found) for each_shifts in shifts)
    assert fmean(each.score for each in found) == pytest.approx(best, abs=1e-5)
    assert fmean(each.score_bound for each in found) == pytest.approx(best, abs=1e-5)
    for link, each in zip(links, found, strict=True):
        assert each.score == pytest.approx(each.score_at(each.shifts_ms), abs=1e-5)
        assert each.score <= rotate(unify(link.circles), link.capacity_gbps, 15).score + 1e-5


@settings(deadline=None, max_examples=20)
@given(bundles(jobs=2))
def test_room_between_phases_costs_no_score(links):
    found = rotate_bundle(links)
    roomy = with_most_room(found, 0.1)
    assert len({each.steps for each in roomy}) == 1
    assert fmean(each.score for each in roomy) == pytest.approx(fmean(each.score for each in found), abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(bundles(), st.permutations(["L1", "L2", "L3"]))
def test_each_link_of_a_placement_has_its_score_under_the_unique_shifts(links, names):
    """A bundle of two links and a third link with one of their jobs."""
    circles = {each.job: each for each in links[0].circles}
    one, other, third = names
    crossing = {one: ("j0", "j1"), other: ("j1", "j0"), third: ("j1", "j2")}
    capacity = dict(zip(names, (50.0, 30.0, 40.0), strict=True))
    found = rank_placements([Candidate("all", crossing)], circles, capacity).ranked[0]
    shifts = found.shifts_ms
    assert found.links[one].steps == found.links[other].steps
    for each in found.links.values():
        own = [shifts[circle.job] for circle in each.unified.circles]
        assert each.score_at(own) == pytest.approx(each.score, abs=1e-5)
    assert found.score == pytest.approx(fmean(each.score for each in found.links.values()))
