# SPDX-License-Identifier: Apache-2.0
"""All links at once: as good as Algorithm 1 where that applies, and what remains where there is a loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import Arc, Candidate, Circle, rank_placements, rotate_jointly

pytestmark = pytest.mark.unit

TREE = {"L1": ("j0", "j1"), "L2": ("j1", "j2", "j3")}
RING = {"L1": ("j0", "j1"), "L2": ("j1", "j2"), "L3": ("j2", "j0")}


@st.composite
def jobs(draw, count):
    arcs = st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(10, 50), st.sampled_from([60, 120]))
    return {
        f"j{place}": Circle(f"j{place}", period, (Arc(begin * period / 12, (begin + up) * period / 12, gbps),))
        for place, (begin, up, gbps, period) in enumerate(draw(st.lists(arcs, min_size=count, max_size=count)))
    }


@settings(deadline=None, max_examples=50)
@given(jobs(4))
def test_without_loops_it_reaches_what_each_link_does_alone(circles):
    each = rank_placements([Candidate("tree", TREE)], circles, dict.fromkeys(TREE, 50.0), precision_deg=15).ranked[0]
    found = rotate_jointly(TREE, circles, 50, precision_deg=15)
    assert found.score == found.score_bound == pytest.approx(each.score, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(jobs(3), st.integers(0, 2))
def test_joint_rotation_around_a_loop_equals_exhaustive_search(circles, more):
    """Further links of the same jobs are worked out as one of their weight."""
    links = RING | {f"L1-{number}": ("j1", "j0") for number in range(more)}
    found = rotate_jointly(links, circles, 50, precision_deg=15)
    at_ms = (np.arange(24) + 0.5) * 5
    periods = [circles[job].iteration_ms for job in ("j0", "j1", "j2")]
    tiled = {job: circle.demand_gbps(at_ms % circle.iteration_ms) for job, circle in circles.items()}
    if max(periods) == 60:  # then the circle has 60 ms, and the same 24 sectors
        tiled = {job: circle.demand_gbps(at_ms / 2) for job, circle in circles.items()}
    best = max(
        1
        - np.mean(
            [np.maximum(np.roll(tiled[a], steps[a]) + np.roll(tiled[b], steps[b]) - 50, 0) for a, b in links.values()]
        )
        / 50
        for steps in ({"j0": 0, "j1": one, "j2": other} for one, other in itertools.product(range(24), repeat=2))
    )
    assert found.score == found.score_bound == pytest.approx(best, abs=1e-9)


def test_three_halves_around_a_loop_cannot_all_part():
    circles = {job: Circle(job, 100, (Arc(0, 50, 50),)) for job in ("j0", "j1", "j2")}
    assert rotate_jointly(RING, circles, 50).score == pytest.approx(1 - 0.5 / 3)
    assert rotate_jointly({"L1": ("j0",)}, circles, 50).shifts_ms == {}
