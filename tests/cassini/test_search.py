# SPDX-License-Identifier: Apache-2.0
"""The best rotations: against all of them, and against a mixed-integer program independent of our search."""

import itertools
import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack

from roundabout.models.cassini import search
from roundabout.models.cassini.search import best_steps, rotation_counts

pytestmark = pytest.mark.unit

EVER = 10**12


def every_rotation(demands, turns, sectors, capacity):
    """The least excess of all rotations within first iterations, and the first that has it: equations 4.1 to 4.4.

    First is what rotates least the job that sends most, the one that stays apart, then the next.
    """
    order = [0, *sorted(range(1, len(demands)), key=lambda place: -demands[place].mean())]
    rolled = [
        np.stack(
            [
                np.roll(np.tile(demands[job], sectors // demands[job].size), step)
                for step in range(-(-sectors // turns[job]))
            ]
        )
        for job in order
    ]
    total = rolled[0][0] - capacity
    for rows in rolled[1:]:
        total = total[..., None, :] + rows
    excess = np.maximum(total, 0).sum(axis=-1)
    first = np.unravel_index(excess.argmin(), excess.shape)
    steps = dict(zip(order, (0, *map(int, first)), strict=True))
    return int(excess[first]), tuple(steps[job] for job in range(len(order)))


@st.composite
def links(draw, most_jobs, sectors, most_level=6):
    """Jobs with any demand, in whole numbers, that turn a number of times which divides the sectors."""
    divisors = [count for count in range(1, 5) if sectors % count == 0]
    turns = draw(st.lists(st.sampled_from(divisors), min_size=1, max_size=most_jobs))
    levels = [
        st.lists(st.integers(0, most_level), min_size=size, max_size=size) for size in (sectors // t for t in turns)
    ]
    demands = [np.array(draw(each), float) for each in levels]
    return demands, turns, draw(st.integers(1, 3 * most_level))


def searched(demands, turns, sectors, capacity, most=EVER, *, few=0):
    """By default every search begins with a guess, as large ones do."""
    with patch.object(search, "FEW", few):
        return best_steps(demands, turns, sectors, capacity, most)


@settings(deadline=None, max_examples=200)
@given(links(4, 12), st.sampled_from([0, search.FEW]))
def test_the_best_rotation_is_that_of_trying_all(link, few):
    demands, turns, capacity = link
    found = searched(demands, turns, 12, capacity, few=few)
    assert (found.excess, found.steps) == every_rotation(demands, turns, 12, capacity)
    assert found.bound == found.excess


@st.composite
def single_phases(draw, sectors):
    """Jobs that are their own mirror image, of equal iteration times and of different ones."""
    turns = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=2, max_size=4))
    demands = []
    for count in turns:
        demand = np.zeros(sectors if sectors % count else sectors // count)
        begin, end = sorted(draw(st.tuples(*[st.integers(0, demand.size)] * 2)))
        demand[begin:end] = draw(st.integers(1, 9))
        demands.append(demand)
    return demands, turns, draw(st.integers(3, 20))


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([11, 12]).flatmap(lambda sectors: st.tuples(single_phases(sectors), st.just(sectors))))
def test_the_search_without_mirror_images_finds_the_optimum(drawn):
    (demands, turns, capacity), sectors = drawn
    found = searched(demands, turns, sectors, capacity)
    assert (found.excess, found.steps) == every_rotation(demands, turns, sectors, capacity)


@settings(deadline=None, max_examples=100)
@given(links(3, 13), st.lists(st.integers(2, 5), min_size=3, max_size=3))
def test_iterations_that_are_no_whole_sectors_are_tried_all(link, turns):
    demands, _, capacity = link
    turns = turns[: len(demands)]
    found = searched(demands, turns, 13, capacity)
    assert (found.excess, found.steps) == every_rotation(demands, turns, 13, capacity)


@settings(deadline=None, max_examples=100)
@given(links(5, 8), st.integers(1, 500))
def test_a_search_cut_short_reports_how_far_it_may_be_off(link, most):
    demands, turns, capacity = link
    best, cut = searched(demands, turns, 8, capacity), searched(demands, turns, 8, capacity, most)
    assert cut.bound <= best.excess <= cut.excess
    rolled = [np.roll(np.tile(each, 8 // each.size), step) for each, step in zip(demands, cut.steps, strict=True)]
    assert cut.excess == np.maximum(sum(rolled) - capacity, 0).sum()


def arcs(rng, jobs, sectors, turns=(1, 2, 3, 4)):
    """Jobs of one or two Up phases."""
    counts, demands = [int(rng.choice(turns)) for _ in range(jobs)], []
    for count in counts:
        demand = np.zeros(sectors // count)
        for _ in range(rng.integers(1, 3)):
            begin, end = sorted(rng.integers(0, demand.size + 1, 2))
            demand[begin:end] = rng.integers(5, 45)
        demands.append(demand)
    return demands, counts


def test_four_jobs_that_send_in_phases_have_the_best_rotation():
    """What is ruled out without a look is more here than where demand is anything."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        demands, turns = arcs(rng, 4, 20, turns=(1, 1, 2))
        found = searched(demands, turns, 20, 50)
        assert (found.excess, found.steps) == every_rotation(demands, turns, 20, 50)


@pytest.mark.proof
@pytest.mark.parametrize("jobs", [2, 3, 4])
def test_thousands_of_links_have_the_best_rotation(jobs):
    rng = np.random.default_rng(jobs)
    for _ in range(2000):
        demands, turns = arcs(rng, jobs, 24)
        capacity = int(rng.integers(20, 90))
        found = searched(demands, turns, 24, capacity)
        assert (found.excess, found.steps) == every_rotation(demands, turns, 24, capacity)
        assert found.bound == found.excess


def by_milp(demands, turns, sectors, capacity):
    """Table 4.1 as a mixed-integer program: a binary for each rotation of each job, and each sector's excess."""
    counts = [1, *(sectors // count for count in turns[1:])]
    blocks = [
        np.stack([np.roll(np.tile(demand, sectors // demand.size), step) for step in range(count)], axis=1)
        for demand, count in zip(demands, counts, strict=True)
    ]
    binaries = sum(counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    chosen = csr_array((np.ones(binaries), (owner, np.arange(binaries))), shape=(len(counts), binaries + sectors))
    fits = hstack([csr_array(np.hstack(blocks)), -eye_array(sectors)])
    result = milp(
        np.concatenate([np.zeros(binaries), np.ones(sectors)]),
        integrality=np.concatenate([np.ones(binaries), np.zeros(sectors)]),
        bounds=Bounds(0, np.concatenate([np.ones(binaries), np.full(sectors, np.inf)])),
        constraints=[LinearConstraint(chosen, 1, 1), LinearConstraint(fits, -np.inf, capacity)],
        options={"mip_rel_gap": 0},
    )
    assert result.status == 0, result.message
    return result.fun


def test_a_mixed_integer_program_agrees():
    rng = np.random.default_rng(1)
    for _ in range(5):
        demands, turns = arcs(rng, 3, 12)
        assert searched(demands, turns, 12, 40).excess == pytest.approx(by_milp(demands, turns, 12, 40), abs=1e-6)


@pytest.mark.proof
@pytest.mark.parametrize("jobs", [5, 6])
def test_a_mixed_integer_program_agrees_on_more_jobs(jobs):
    rng = np.random.default_rng(jobs)
    for _ in range(40):
        demands, turns = arcs(rng, jobs, 24)
        capacity = int(rng.integers(30, 30 * jobs))
        found = searched(demands, turns, 24, capacity)
        assert found.bound == found.excess
        assert found.excess == pytest.approx(by_milp(demands, turns, 24, capacity), abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_fewer_rotations_stand_for_all(turns):
    """Any rotation of all jobs comes to one within `choices` when everything is rotated by some amount."""
    sectors = math.lcm(*turns) * 2
    sizes, needed = [sectors // count for count in turns], rotation_counts(turns, sectors)
    reached = {
        tuple((step + all_) % size for step, size in zip(steps, sizes, strict=True))
        for steps in itertools.product(*map(range, needed))
        for all_ in range(sectors)
    }
    assert len(reached) == math.prod(sizes)
