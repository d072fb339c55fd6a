# SPDX-License-Identifier: Apache-2.0
"""Counters joined to iterations: nothing lost, nothing twice, and never further off than stated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from analysis.reading.congestion.iteration_attribution import IterationEdges, attribute
from analysis.statistics.cumulative_counter import CumulativeCounter

pytestmark = pytest.mark.unit

BASE_NS = 1_795_266_075_000_000_000  # as large as instants really are
HUGE = 2**55  # more than a float counts exactly


def integers(values):
    return np.array(values, dtype=np.int64)


def counter(at, totals, bound_ns=0):
    return CumulativeCounter.from_increments(BASE_NS + integers(at), np.diff(integers(totals)), bound_ns)


def edges(at, bound_ns=0):
    return IterationEdges(BASE_NS + integers(at), bound_ns)


@st.composite
def sampled(draw, largest=HUGE):
    """A counter with gaps, sampled at uneven instants."""
    steps = draw(st.lists(st.integers(1, 30_000_000), max_size=30))
    increments = draw(
        st.lists(st.none() | st.integers(0, 100) | st.integers(0, largest), min_size=len(steps), max_size=len(steps))
    )
    at = np.cumsum(integers([draw(st.integers(0, 50_000_000)), *steps]))
    known = np.array([each is not None for each in increments], dtype=np.bool_)
    totals = np.concatenate([[0], np.cumsum(integers([each or 0 for each in increments]))]).astype(np.int64)
    return CumulativeCounter(BASE_NS + at, totals, known, draw(st.integers(0, 2_000_000)))


@st.composite
def iterations(draw):
    at = sorted(draw(st.lists(st.integers(-50_000_000, 900_000_000), min_size=1, max_size=20)))
    return edges(at, draw(st.integers(0, 2_000_000)))


@given(
    port=sampled(),
    sources=st.dictionaries(st.sampled_from(["j1", "j2"]), st.lists(sampled(), max_size=3)),
    others=st.lists(sampled(), max_size=2),
    of_jobs=st.fixed_dictionaries({"j1": iterations(), "j2": iterations()}),
)
def test_iterations_and_what_none_can_claim_are_what_the_port_gained(port, sources, others, of_jobs):
    joined = attribute(port, sources, others, of_jobs)
    attributed = sum(int(count) for gains in joined.jobs.values() for count in gains.counts)
    unattributed = joined.outside + joined.no_job + joined.no_source
    assert attributed + unattributed == joined.gained == int(port.totals[-1])
    assert attributed + joined.outside == sum(int(each.totals[-1]) for parts in sources.values() for each in parts)
    assert joined.no_job == sum(int(each.totals[-1]) for each in others)
    assert joined.outside >= 0
    for job, gains in joined.jobs.items():
        assert gains.counts.dtype == np.int64
        assert len(gains.counts) == len(of_jobs[job].edges_ns) - 1
        assert (gains.counts >= 0).all() and (gains.bounds >= 0).all()
        assert not gains.counts[~gains.known].any()


@given(
    counted=st.lists(st.integers(0, 1000), max_size=60).map(sorted),
    sample_errors=st.lists(st.integers(-9, 9), min_size=11, max_size=11),
    truth=st.lists(st.integers(0, 1000), min_size=2, max_size=8).map(sorted),
    edge_errors=st.lists(st.integers(-7, 7), min_size=8, max_size=8),
)
def test_the_true_count_lies_within_the_bound(counted, sample_errors, truth, edge_errors):
    """Instants of events are known here, clocks and samples are not exact: the truth lies within the bound."""
    taken = np.arange(0, 1001, 100)
    totals = np.searchsorted(counted, taken, side="right")
    samples = counter(taken + sample_errors, totals, bound_ns=9)
    seen = np.maximum.accumulate(integers(truth) + edge_errors[: len(truth)])  # a later edge is never seen earlier
    gains = samples.gains_between(BASE_NS + seen, bound_ns=7)
    real = np.diff(np.searchsorted(counted, truth, side="right"))
    assert (np.abs(gains.counts - real) <= gains.bounds)[gains.known].all()
    assert gains.known[[a >= 32 and b <= 968 for a, b in pairwise(truth)]].all()


def test_a_job_that_is_silent_at_its_edges_is_counted_exactly():
    # Marks come between 120 and 180 only; iterations end at 100 and 200, between samples.
    marks = counter([0, 90, 110, 150, 190, 210], [7, 7, 7, 30, 47, 47])
    gains = marks.gains_between(edges([0, 100, 200]).edges_ns)
    assert gains.counts.tolist() == [0, 40]
    assert gains.bounds.tolist() == [0, 0]
    assert gains.known.all()


def test_counts_between_samples_are_linear_with_bounds():
    marks = counter([0, 100, 200], [0, 100, 110])
    gains = marks.gains_between(edges([0, 25, 150]).edges_ns)
    assert gains.counts.tolist() == [25, 80]
    assert gains.bounds.tolist() == [75, 80]  # all but 25 may have come after 25, and all but 5 after 150


def test_a_clock_that_may_be_off_widens_the_bound():
    marks = counter([0, 100, 200, 300], [0, 10, 20, 30])
    assert marks.gains_between(edges([100, 200]).edges_ns).bounds.tolist() == [0]
    assert marks.gains_between(edges([100, 200]).edges_ns, bound_ns=1).bounds.tolist() == [20]


def test_an_iteration_that_samples_do_not_cover_is_not_known():
    marks = counter([100, 200, 300], [0, 10, 20])
    assert marks.gains_between(edges([50, 150, 250, 350]).edges_ns).known.tolist() == [False, True, False]
    assert marks.gains_between(edges([100, 200, 300]).edges_ns).known.tolist() == [True, True]
    assert marks.gains_between(edges([100, 200, 300]).edges_ns, bound_ns=1).known.tolist() == [False, False]


def test_a_gap_spoils_only_the_iterations_that_it_touches():
    at = BASE_NS + np.arange(0, 600, 100)
    marks = CumulativeCounter.from_increments(at, np.array([10.0, 10.0, np.nan, 10.0, 10.0]))
    assert marks.total_gain == 40
    gains = marks.gains_between(edges([0, 150, 290, 400, 500]).edges_ns)
    assert gains.known.tolist() == [True, False, False, True]


def test_marks_go_to_the_job_whose_worker_sent_the_packets():
    at = [0, 100, 200, 300]
    joined = attribute(
        counter(at, [100, 116, 129, 129]),
        {"j1": [counter(at, [0, 9, 19, 19]), counter(at, [3, 4, 4, 4])], "j2": [counter(at, [5, 5, 8, 8])]},
        [counter(at, [0, 1, 1, 1])],
        {"j1": edges([0, 100, 200]), "j2": edges([0, 200])},
    )
    assert joined.jobs["j1"].counts.tolist() == [10, 10]
    assert joined.jobs["j2"].counts.tolist() == [3]
    assert (joined.gained, joined.outside, joined.no_job, joined.no_source) == (29, 0, 1, 5)


def test_counts_before_and_after_iterations_are_outside():
    marks = counter([0, 100, 200, 300], [0, 4, 10, 13])
    joined = attribute(marks, {"j1": [marks]}, [], {"j1": edges([100, 200])})
    assert joined.jobs["j1"].counts.tolist() == [6]
    assert (joined.outside, joined.no_job, joined.no_source) == (7, 0, 0)


def test_a_job_without_counted_marks_gained_0_while_the_port_was_sampled():
    joined = attribute(counter([0, 100, 200], [0, 50, 50]), {"j1": []}, [], {"j1": edges([0, 100, 300])})
    assert joined.jobs["j1"].counts.tolist() == [0, 0]
    assert joined.jobs["j1"].bounds.tolist() == [50, 50]  # there are marks without a source
    assert joined.jobs["j1"].known.tolist() == [True, False]
    assert (joined.outside, joined.no_job, joined.no_source) == (0, 0, 50)


def test_a_job_without_counted_marks_has_no_known_iteration():
    joined = attribute(counter([0, 100], [0, 50]), {"j1": None}, [], {"j1": edges([0, 50, 100])})
    assert not joined.jobs["j1"].known.any()
    assert (joined.outside, joined.no_job, joined.no_source) == (0, 0, 50)


@pytest.mark.parametrize("at", [[], [5]])
def test_fewer_than_two_samples_give_no_rate(at):
    marks = counter(at, at)
    gains = marks.gains_between(edges([0, 10, 20]).edges_ns)
    assert marks.total_gain == 0
    assert gains.counts.tolist() == [0, 0]
    assert not gains.known.any()


def test_counts_beyond_what_floats_hold_stay_exact():
    marks = counter([0, 1_000_000_000, 2_000_000_000], [0, 2**61 + 1, 2**61 + 2])
    gains = marks.gains_between(edges([0, 999_999_999, 2_000_000_000]).edges_ns)
    assert int(gains.counts.sum()) == 2**61 + 2
    assert int(gains.counts[0]) == (2**61 + 1) * 999_999_999 // 1_000_000_000


@given(
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    gains=st.lists(st.integers(0, 100), min_size=8, max_size=8),
    edge=st.integers(-2, 30),
)
def test_samples_of_one_instant_have_a_value_between_the_neighbors(steps, gains, edge):
    at = np.cumsum([0, *steps])
    totals = np.cumsum([0, *gains[: len(steps)]])
    found = int(counter(at, totals).value_at(BASE_NS + integers([edge]))[0])
    assert totals[at < edge].max(initial=0) <= found <= totals[at > edge].min(initial=totals[-1])
    if edge >= at[-1]:
        assert found == totals[-1]
