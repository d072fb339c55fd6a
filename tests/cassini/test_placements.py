# SPDX-License-Identifier: Apache-2.0
"""Candidate placements: ranked by how compatible the jobs of their links are, those with loops left out."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from roundabout.models.cassini import Arc, Candidate, CassiniError, Circle, pick_shifts, rank_placements

pytestmark = pytest.mark.unit

CIRCLES = {
    "half": Circle("half", 100, (Arc(0, 50, 50),)),
    "other": Circle("other", 100, (Arc(0, 50, 50),)),
    "third": Circle("third", 50, (Arc(0, 25, 50),)),
    "full": Circle("full", 100, (Arc(0, 100, 50),)),
}
CAPACITY = {"L1": 50.0, "L2": 50.0, "L3": 50.0}
GOOD = Candidate("good", {"L1": ("half", "other"), "L2": ("full",)})
BAD = Candidate("bad", {"L1": ("half", "full"), "L2": ("other",)})
MIXED = Candidate("mixed", {"L1": ("half", "other"), "L2": ("other", "full")})
LOOPED = Candidate("looped", {"L1": ("half", "other"), "L2": ("other", "third"), "L3": ("third", "half")})
APART = Candidate("apart", {"L1": ("half",), "L2": ("other",)})


def ranked(*candidates, **options):
    return [
        (each.candidate.name, each.score) for each in rank_placements(candidates, CIRCLES, CAPACITY, **options).ranked
    ]


def test_placements_are_ranked_by_the_mean_score_of_their_links():
    assert ranked(BAD, MIXED, GOOD, APART) == [("good", 1), ("apart", 1), ("mixed", 0.75), ("bad", 0.5)]
    assert ranked(BAD, MIXED, over=min) == [("bad", 0.5), ("mixed", 0.5)]


def test_the_best_placement_comes_with_unique_shifts():
    chain = Candidate("chain", {"L1": ("half", "other"), "L2": ("other", "third")})
    found = rank_placements([chain], CIRCLES, CAPACITY).ranked[0]
    assert found.shifts_ms == {"half": 0, "other": 50, "third": 0}  # third cannot avoid other: it stays beside it
    assert rank_placements([APART], CIRCLES, CAPACITY).ranked[0].shifts_ms == {}


def by_link(found, shifts):
    """The score of each link under time-shifts of all jobs."""
    links = found.links.values()
    return [each.score_at([shifts[circle.job] for circle in each.unified.circles]) for each in links]


def test_unique_shifts_keep_each_links_score_and_picked_ones_do_not():
    """Figure 4.7, and its "simple approach": the shared job would have to be shifted by 0 and by 50 ms."""
    chain = Candidate("chain", {"L1": ("half", "other"), "L2": ("other", "again")})
    circles = CIRCLES | {"again": Circle("again", 100, (Arc(0, 50, 50),))}
    found = rank_placements([chain], circles, CAPACITY).ranked[0]
    assert found.weights == {"L1": {"half": 0, "other": 50}, "L2": {"other": 0, "again": 50}}
    assert by_link(found, found.shifts_ms) == [1, 1]
    assert by_link(found, pick_shifts(found.weights, min)) == [0.5, 1]
    assert by_link(found, pick_shifts(found.weights, max)) == [1, 0.5]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8), st.sampled_from([50, 100, 200])), min_size=5, max_size=5)
)
@example([(0, 1, 50), (0, 1, 50), (3, 7, 100), (0, 2, 50), (0, 2, 200)])  # shifted by halves of another link's sectors
def test_unique_shifts_keep_scores_whatever_the_periods(jobs):
    circles = {
        f"j{place}": Circle(
            f"j{place}", period, (Arc(begin / 16 * period, (begin + up) / 16 * period, 20.0 + 5 * place),)
        )
        for place, (begin, up, period) in enumerate(jobs)
    }
    tree = Candidate("tree", {"L1": ("j0", "j1"), "L2": ("j3", "j1", "j2"), "L3": ("j4", "j2")})
    found = rank_placements([tree], circles, CAPACITY | {"L3": 30.0}).ranked[0]
    assert by_link(found, found.shifts_ms) == pytest.approx([each.score for each in found.links.values()], abs=1e-6)


def test_placements_with_loops_are_left_out_and_named():
    found = rank_placements([LOOPED, BAD], CIRCLES, CAPACITY)
    assert [each.candidate.name for each in found.ranked] == ["bad"]
    assert set(found.loops["looped"]) == {"half", "other", "third", "L1", "L2", "L3"}
    with pytest.raises(CassiniError, match="found a loop in each of 1 placements"):
        rank_placements([LOOPED], CIRCLES, CAPACITY)


def test_links_with_the_same_jobs_are_worked_out_once():
    seen = []

    def counting(function, meetings):
        seen.extend(meetings)
        return map(function, meetings)

    rank_placements([GOOD, MIXED, BAD], CIRCLES, CAPACITY, mapped=counting)
    assert [tuple(circle.job for circle in link.circles) for bundle in seen for link in bundle] == [
        ("half", "other"),
        ("other", "full"),
        ("half", "full"),
    ]


def test_processes_find_the_same():
    def elsewhere(function, meetings):
        return (_copied(_copied(function)(meeting)) for meeting in _copied(meetings))

    there = rank_placements([GOOD, MIXED], CIRCLES, CAPACITY, mapped=elsewhere)
    here = rank_placements([GOOD, MIXED], CIRCLES, CAPACITY)
    assert [(each.candidate, each.score, each.shifts_ms) for each in there.ranked] == [
        (each.candidate, each.score, each.shifts_ms) for each in here.ranked
    ]
    assert np.array_equal(there.ranked[0].links["L1"].demands_gbps, here.ranked[0].links["L1"].demands_gbps)


def _copied(thing):
    """As what another process gets, or sends back."""
    return pickle.loads(pickle.dumps(thing))
