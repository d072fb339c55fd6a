# SPDX-License-Identifier: Apache-2.0
"""Period and phases from counters: what was played is found, under jitter, gaps and stragglers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from analysis.reading.measured_profile import compare_profiles, iteration_parts
from analysis.statistics import phases
from analysis.statistics.iteration_period import NoPeriodError
from analysis.statistics.phase_folding import FoldedIterations, WorkerCounter, fold_iterations
from analysis.statistics.phases import find_phases
from roundabout.spec import Phase, Profile

pytestmark = pytest.mark.unit

MS = 1_000_000
SEGMENT_BYTES = 4344 * 100


def compute(ms):
    return {"compute_ms": float(ms)}


def send(gbps, ms):
    return {"bytes": round(gbps * ms / 8 * 1e6), "alone_ms": float(ms)}


def profile(*parts):
    phases_ = [Phase(name=f"p{number}", source="test", **part) for number, part in enumerate(parts)]
    return Profile(name="played", model="test", phases=tuple(phases_))


VGG = profile(compute(150), send(32.15, 143))
# Three peaks, then a heavy phase (the interleaving thesis' GPT jobs).
GPT = profile(
    compute(60), send(16, 20), compute(15), send(16, 20), compute(15), send(16, 20), compute(25), send(35.5, 90)
)
STEP = profile(compute(60), send(13.3, 60), send(32, 100))


def curve(played, generator, *, iterations, jitter, stragglers, first):
    """When how many bytes had been sent: corners of the exact course, as the replay trainer would play it."""
    at, sent = [0.0, 60.0], [0.0, 0.0]
    for number in range(iterations):
        slow = 1.5 if number in stragglers else 1.0
        factor = max(0.0, 1 + jitter * generator.normal()) * slow
        share = first if number == 0 else 1.0
        for phase in played.phases:
            at.append(at[-1] + (phase.compute_ms * factor if phase.bytes is None else phase.alone_ms))
            sent.append(sent[-1] + (phase.bytes or 0) * share)
    return [*at, at[-1] + 60], [*sent, sent[-1]]


def counters(played, *, iterations=40, jitter=0.005, step_ms=10.0, missing=0.0, stragglers=(), seed=0, first=1.0):
    """The samples of two workers' counters, each at its own instants."""
    generator = np.random.default_rng(seed)
    at, sent = curve(played, generator, iterations=iterations, jitter=jitter, stragglers=stragglers, first=first)
    workers = []
    for _ in range(2):
        steps = np.arange(int(at[-1] / step_ms))
        when = steps * step_ms + generator.uniform(0, step_ms) + generator.uniform(0, 0.4, len(steps))
        when = when[generator.random(len(when)) >= missing]
        whole = np.interp(when, at, sent) // SEGMENT_BYTES * SEGMENT_BYTES
        workers.append(WorkerCounter(1_763_700_000 * 10**9 + (when * MS).astype(np.int64), whole.astype(np.int64)))
    return workers


MIN_SAMPLES = 4
"""Of a phase: with fewer, where it ends is a guess."""


def holds(played, found):
    """What the project promises for 0.5 % of jitter."""
    off = compare_profiles(found, played)
    assert off.period_share < 0.005
    assert off.edge_share is not None, [(phase.sends, phase.duration_ms.value) for phase in found.phases]
    assert off.edge_share < 0.02
    assert off.demand_share < 0.03


@pytest.mark.parametrize("played", [VGG, GPT, STEP], ids=["one", "peaks", "steps"])
@pytest.mark.parametrize("how", [{"step_ms": 5.0}, {"step_ms": 10.0, "missing": 0.2}, {"step_ms": 20.0}], ids=str)
def test_played_phases_are_found_in_counters(played, how):
    holds(played, find_phases(counters(played, **how)))


@pytest.mark.parametrize(
    "how",
    [
        {"stragglers": (0, 7, 8, 23)},
        {"first": 3.0},
        {"first": 0.2},
        {"iterations": 12},
        {"jitter": 0.0},
        {"seed": 3, "step_ms": 14.65},  # a twentieth of the period, so that no iteration is sampled differently
    ],
    ids=str,
)
def test_phases_are_found_despite_oddities_of_a_run(how):
    holds(VGG, find_phases(counters(VGG, **how)))


@pytest.mark.parametrize("seed", range(3))
def test_iterations_that_went_differently_are_left_out(seed):
    holds(GPT, find_phases(counters(GPT, stragglers=(11, 12, 30), seed=seed)))


@st.composite
def profiles(draw):
    parts = [compute(draw(st.floats(60, 180)))]
    for _ in range(draw(st.integers(0, 2))):
        parts += [send(draw(st.floats(10, 43)), draw(st.floats(30, 120))), compute(draw(st.floats(30, 55)))]
    rate = draw(st.floats(10, 30))
    parts.append(send(rate, draw(st.floats(30, 120))))
    if draw(st.booleans()):
        parts.append(send(rate * 1.4, draw(st.floats(40, 100))))
    return profile(*parts)


def repeats_itself(played):
    """Whether an iteration is nearly two or three of another: then it is unclear which it is."""
    rates = [8e-6 * each.bytes / each.alone_ms if each.bytes else 0.0 for each in played.phases]
    demand = np.repeat(rates, [round(each.compute_ms or each.alone_ms) for each in played.phases])
    shifted = (np.roll(demand, len(demand) // parts) for parts in (2, 3))
    return any(np.corrcoef(demand, each)[0, 1] > 0.6 for each in shifted)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(profiles(), st.floats(5, 15), st.sampled_from([0.0, 0.1]), st.integers(0, 2**31))
def test_any_profile_is_found(played, step_ms, missing, seed):
    assume(not repeats_itself(played))
    assume(min(each.compute_ms or each.alone_ms for each in played.phases) >= MIN_SAMPLES * step_ms)
    holds(played, find_phases(counters(played, step_ms=step_ms, missing=missing, seed=seed)))


def test_intervals_hold_what_was_played():
    found = find_phases(counters(VGG))
    quiet, sending = found.phases
    assert found.period_ms.low <= 293 <= found.period_ms.high
    assert found.period_ms.high - found.period_ms.low < 0.01 * 293
    assert sending.bytes.value == pytest.approx(VGG.comm_bytes, rel=0.003)
    for estimate, played in ((quiet.duration_ms, 150), (sending.duration_ms, 143), (sending.gbps, 32.15)):
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.low == pytest.approx(played, rel=0.01)
        assert estimate.high == pytest.approx(played, rel=0.01)


def test_more_jitter_widens_the_intervals():
    calm, restless = (find_phases(counters(VGG, jitter=jitter)).period_ms for jitter in (0.002, 0.03))
    assert restless.high - restless.low > 3 * (calm.high - calm.low)


def test_the_period_is_no_multiple_of_itself_and_no_part():
    alike = profile(compute(80), send(20, 60), compute(60), send(20, 75))
    assert find_phases(counters(alike)).period_ms.value == pytest.approx(275, rel=0.005)


def test_a_job_that_never_rests_has_phases_too():
    holds(STEP, find_phases(counters(STEP)))
    restless = profile(send(8, 120), send(30, 100))
    found = find_phases(counters(restless, jitter=0.0))
    assert [phase.sends for phase in found.phases] == [True, True]
    assert sorted(phase.gbps.value for phase in found.phases) == pytest.approx([8, 30], rel=0.03)


def sampled(values, step_ms=10.0):
    at = 10**18 + (np.arange(len(values)) * step_ms * MS).astype(np.int64)
    return [WorkerCounter(at, np.asarray(values, dtype=np.int64))]


GENERATOR = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "found no samples"),
        (sampled([5]), "found no samples"),
        (sampled([5] * 500), "nothing was sent"),
        (sampled(np.arange(500) * 10**7), "sent evenly"),
        (sampled(np.cumsum(GENERATOR.integers(0, 10**7, 1000))), "no period"),
        (sampled(np.cumsum(GENERATOR.random(1000) < 0.05) * 10**8), "no period"),
        (sampled([*np.arange(0, 500, 5), *np.arange(0, 500, 5)]), "counter that fell"),
        (counters(VGG, iterations=4), "no period|expected 5 or more"),
        (counters(VGG, iterations=1), "no period|expected 5 or more"),
    ],
    ids=["none", "one", "silence", "even", "noise", "bursts", "fell", "four", "once"],
)
def test_counters_without_a_period_are_refused(workers, said):
    with pytest.raises(NoPeriodError, match=said):
        find_phases(workers)


def test_iterations_are_separated_one_by_one():
    folded = fold_iterations(counters(VGG, iterations=20, stragglers=(9,)))
    assert folded.iterations == 19  # where the last one ended, no other followed
    lengths = np.sort(folded.lengths_ms)
    assert lengths[:-4] == pytest.approx(293, rel=0.015)
    assert lengths[-2:] == pytest.approx(293 + 75, rel=0.02)


def test_a_played_profile_is_turned_to_what_was_found():
    found = find_phases(counters(GPT))
    turned = profile(*(({"compute_ms": 20.0}), *_parts(GPT)[1:], {"compute_ms": 40.0}))
    assert [part.duration_ms for part in iteration_parts(turned, found)] == [60, 20, 15, 20, 15, 20, 25, 90]
    assert compare_profiles(found, turned) == compare_profiles(found, GPT)
    assert compare_profiles(found, VGG).edge_share is None


def _parts(played):
    return [phase.model_dump(include={"compute_ms", "bytes", "alone_ms"}, exclude_none=True) for phase in played.phases]


def test_points_at_one_instant_end_the_search_for_a_line():
    """Iterations as long as many samples put many samples at the same instants, where no line is near all of them."""
    step = np.array([(0.0, 0.0), (0.5, 0.0), (0.5, 0.4), (0.5, 1.0), (1.0, 1.0)])
    line = phases.simplify_line(step, 0.01)
    assert [tuple(each) for each in line] == [(0, 0), (0.5, 0), (0.5, 0.4), (0.5, 1), (1, 1)]
    assert len(phases.simplify_line(np.array([(0.5, 0.0), (0.5, 1.0)]), 0.01)) == 2


@pytest.mark.parametrize("played", [VGG, STEP])
def test_resampled_phases_are_those_of_refitted_lines(played):
    folded = fold_iterations(counters(played))
    line = phases.merge_short_pieces(
        phases.fit_fewest_vertices(folded.points, phases.find_outline(folded.points)),
        folded.points,
    )
    counts = folded.resample(20, np.random.default_rng(1))
    place = np.searchsorted(np.unique(folded.number), folded.number)
    steps = phases.resample_lines(line, folded, counts)
    for step, count in zip(steps, counts, strict=True):
        again = phases.fit_line(line, np.repeat(folded.points, count[place], axis=0))
        assert step == pytest.approx(again, abs=1e-4)


@given(st.integers(5, 60), st.integers(0, 2**32 - 1))
def test_blocks_of_iterations_are_resampled(count, seed):
    number = np.arange(count)
    every = (number / count, number / count, number, number + 1.0, number, 1.0, 1.0, number, np.zeros(1))
    folded = FoldedIterations(*every)
    counts = folded.resample(130, np.random.default_rng(seed))
    assert (counts.sum(axis=1) == count).all()
    drawn = folded.resampled_periods_ms(counts)
    assert ((drawn >= 1) & (drawn <= count)).all()
    ordered = [float(np.sort(np.repeat(folded.lengths_ms, each))[(count - 1) // 2]) for each in counts]
    assert drawn.tolist() == ordered
