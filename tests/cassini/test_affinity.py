# SPDX-License-Identifier: Apache-2.0
"""The affinity graph: unique time-shifts that keep links compatible, and loops by name."""

import itertools
import random

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cassini import LoopError, find_loop, link_bundles, shared_links, time_shifts

pytestmark = pytest.mark.unit


def test_the_example_of_figure_4_8():
    """Equations 4.7 to 4.9: j1 and j2 share l1, j2 and j3 share l2."""
    weights = {"l1": {"j1": 30.0, "j2": 70.0}, "l2": {"j2": 10.0, "j3": 90.0}}
    found = time_shifts(weights, {"j1": 200.0, "j2": 200.0, "j3": 150.0})
    assert found == {"j1": 0, "j2": (-30 + 70) % 200, "j3": (-30 + 70 - 10 + 90) % 150}


def test_differences_within_the_perimeter_do_not_survive_different_periods():
    """Equation 4.6 requires (t1 - t2) mod 120 to be that of the link; Algorithm 1's own modulo breaks it."""
    weights = {"l": {"j1": 30.0, "j2": 10.0}}
    found = time_shifts(weights, {"j1": 40.0, "j2": 60.0})
    assert found == {"j1": 0, "j2": 40}
    assert (30 - 10) % 120 == 20
    assert (found["j1"] - found["j2"]) % 120 == 80
    c = -30
    assert ((found["j1"] - 30 - c) % 40, (found["j2"] - 10 - c) % 60) == (0, 0)


@st.composite
def loop_free(draw):
    """Trees and forests: each link joins jobs of which one at most was there before, and only it."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    periods, weights = {}, {}
    for link in range(draw(st.integers(1, 6))):
        new = [f"j{len(periods) + place}" for place in range(rng.randint(1, 3))]
        old = rng.sample(sorted(periods), 1) if periods and rng.random() < 0.8 else []
        periods |= {job: rng.randint(1, 300) for job in new}
        weights[f"l{link}"] = {job: rng.randrange(periods[job]) for job in rng.sample(new + old, len(new + old))}
    return weights, periods


@settings(deadline=None, max_examples=500)
@given(loop_free())
def test_on_each_link_all_jobs_are_moved_by_one_constant(graph):
    """t_j = t_j^l + c (mod the iteration time of j), whatever the periods: what compatibility needs, exactly."""
    weights, periods = graph
    assert find_loop(weights) is None
    shifts = time_shifts(weights, periods)
    assert set(shifts) == {job for jobs in shared_links(weights).values() for job in jobs}
    assert all(0 <= shift < periods[job] for job, shift in shifts.items())
    for link in shared_links(weights):
        constants = {job: shifts[job] - weight for job, weight in weights[link].items()}
        assert any(all((own - c) % periods[job] == 0 for job, own in constants.items()) for c in constants.values())


@settings(deadline=None, max_examples=100)
@given(loop_free(), st.randoms(use_true_random=False))
def test_a_loop_is_found_and_named(graph, rng):
    weights, _ = graph
    groups = _connected(shared_links(weights))
    able = [sorted(jobs) for jobs in groups if len(jobs) > 1]
    if not able:
        return
    closing = {"again": rng.sample(rng.choice(able), 2)}
    crossing = weights | closing
    found = find_loop(crossing)
    if set(closing["again"]) in map(set, weights.values()):
        assert found is None  # a second link of the same jobs
        return
    assert found is not None and len(found) % 2 == 0 and len(set(found)) == len(found) >= 4
    around = [*found, found[0]]
    for one, other in itertools.pairwise(around):
        job, link = (one, other) if one.startswith("j") else (other, one)
        assert job in crossing[link]
    with pytest.raises(LoopError, match="found a loop in the affinity graph: j"):
        time_shifts({link: dict.fromkeys(jobs, 0.0) for link, jobs in crossing.items()}, {})


def _connected(links):
    groups = []
    for jobs in map(set, links.values()):
        joined = [group for group in groups if group & jobs]
        groups = [group for group in groups if group not in joined] + [jobs.union(*joined)]
    return groups


def test_links_of_the_same_jobs_are_one_vertex():
    same = {"l1": ["j1", "j2"], "l2": ["j2", "j1"], "l3": ["j1", "j2"]}
    assert link_bundles(same) == [("l1", "l2", "l3")]
    assert find_loop(same) is None
    assert set(find_loop(same | {"l4": ["j1", "j2", "j3"]})) == {"j1", "l1", "j2", "l4"}


@settings(deadline=None, max_examples=100)
@given(loop_free(), st.randoms(use_true_random=False))
def test_further_links_of_the_same_jobs_change_no_time_shift(graph, rng):
    weights, periods = graph
    link = rng.choice(sorted(weights))
    assert time_shifts(weights | {"again": weights[link]}, periods) == time_shifts(weights, periods)


def test_a_link_with_one_job_and_a_job_alone_are_no_vertices():
    crossing = {"l1": ["j1", "j2"], "l2": ["j1"], "l3": ["j3"], "l4": []}
    assert shared_links(crossing) == {"l1": ("j1", "j2")}
    assert find_loop(crossing) is None
    weights = {link: dict.fromkeys(jobs, 5.0) for link, jobs in crossing.items()}
    assert time_shifts(weights, {"j1": 10, "j2": 10, "j3": 10}) == {"j1": 0, "j2": 0}
