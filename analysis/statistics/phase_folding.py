# SPDX-License-Identifier: Apache-2.0
"""A job's iterations, found in its workers' byte counters and folded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.iteration_period import (
    MIN_LIKENESS,
    MIN_SAMPLES,
    OVERSAMPLING,
    QUIET_SHARE,
    NoPeriodError,
    Series,
    find_period,
    peak_vertex,
)

MIN_ITERATIONS = 5
"""Least number of whole iterations that distinguish what repeats from what does not."""
TIGHTNESS = 5.0
"""Cost of an unusual iteration length, relative to the prominence of the edge that marks the iteration."""
SAME_BYTES = 0.1
"""Iterations whose bytes differ from the median by more than this share are left out, such as a warm-up."""
SAME_COURSE = 0.02
"""Iterations whose bytes went out at other times, by more than this share of the period, are left out."""
MAX_SPREAD = 0.15
"""Largest spread of the middle half of iterations' lengths, as a share of their median; a larger one is no period."""
SAME_OFFSET = 0.95
"""The offset between two workers is the least one with this share of the best correlation: others add whole periods."""
OFFSET_SAMPLES = 2
"""Number of samples by which workers must be apart for their counters to be shifted; shorter offsets blur edges only.
"""
ALIASED_SAMPLES = 10
"""A period of fewer samples, all at the same few places in it, may be a multiple of a shorter one; a guess."""
ALIGNMENTS = 3
DRAWS_AT_ONCE = 100
"""Number of draws whose iterations are in memory at once."""
GRID = 200
SHARES = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class WorkerCounter:
    """One worker's counter: the `payload_bytes` sent until `at_ns`, both ascending, at the papers' scale."""

    at_ns: Integers
    payload_bytes: Integers


class FoldedIterations(NamedTuple):
    """The samples of all iterations, laid upon each other.

    `at` and `sent` are shares of the period and of an iteration's bytes, counted from the middle of the longest quiet
    time. `number` is the iteration of each sample. All three have shape (samples,). `lengths_ms` holds the length of
    each iteration of each worker, and `length_of` the iteration's number. `bytes` is one worker's payload in an
    iteration. `begins_ns` holds the begins of the first worker's iterations on its counter's clock. `offsets_ms` holds
    the time by which each worker sends after the first one, less whole periods; it is taken off the worker's samples.
    """

    at: Floats
    sent: Floats
    number: Integers
    lengths_ms: Floats
    length_of: Integers
    bytes: float
    likeness: float
    begins_ns: Integers
    offsets_ms: Floats

    @property
    def points(self) -> Floats:
        """Return `at` and `sent` as the columns of one array; shape (samples, 2)."""
        return np.column_stack([self.at, self.sent])

    @property
    def iterations(self) -> int:
        """Return the number of iterations."""
        return len(np.unique(self.number))

    @property
    def samples_per_iteration(self) -> float:
        """Return the mean number of one worker's samples in an iteration."""
        return len(self.at) / self.iterations / len(self.offsets_ms)

    @property
    def period_ms(self) -> float:
        """Return the median length of the iterations, ms."""
        return float(np.median(self.lengths_ms))

    def resample(self, draws: int, generator: np.random.Generator) -> Integers:
        """Return how often each draw has each iteration; shape (draws, iterations).

        Consecutive iterations depend on each other, so blocks are drawn, of the cube root of the number of iterations
        (circular block bootstrap: Politis and Romano 1992).
        """
        count = self.iterations
        length = max(round(count ** (1 / 3)), 1)
        begins = generator.integers(0, count, (draws, -(-count // length)))
        drawn = ((begins[:, :, None] + np.arange(length)) % count).reshape(draws, -1)[:, :count]
        counts = np.zeros((draws, count), np.int64)
        np.add.at(counts, (np.arange(draws)[:, None], drawn), 1)
        return counts

    def resampled_periods_ms(self, counts: Integers) -> Floats:
        """Return the median length of the iterations of each draw, ms; that of all if a draw has no known length."""
        places = np.searchsorted(np.unique(self.number), self.length_of)
        order = np.argsort(self.lengths_ms, kind="stable")
        ordered, places = self.lengths_ms[order], np.minimum(places, counts.shape[1] - 1)[order]
        periods_ms = np.empty(len(counts))
        for first in range(0, len(counts), DRAWS_AT_ONCE):
            below = np.cumsum(counts[first : first + DRAWS_AT_ONCE, places], axis=1)
            middle = np.argmax(2 * below >= below[:, -1:], axis=1)
            periods_ms[first : first + DRAWS_AT_ONCE] = np.where(below[:, -1] > 0, ordered[middle], self.period_ms)
        return periods_ms


def fold_iterations(workers: Sequence[WorkerCounter]) -> FoldedIterations:
    """Return the folded iterations of a job, from its workers' counters while the job had the network to itself.

    Workers that send at different times, such as those of hosts whose clocks differ, are aligned first. The period is
    then read from the autocorrelation of the workers' common rate. Iterations are then found by dynamic
    programming over edges (Ellis, Beat Tracking by Dynamic Programming, JNMR 2007). They are laid upon each other by
    their sent bytes (after Woody, Med. Biol. Eng. 1967).

    Raises:
        NoPeriodError: nothing was sent, or evenly, or without a period, or in fewer than `MIN_ITERATIONS` iterations,
            or samples are too far apart to distinguish a period from its multiples.
    """
    _check_counters(workers)
    offsets_ms = _offsets_ms(workers)
    workers = [_shift(worker, offset_ms) for worker, offset_ms in zip(workers, offsets_ms, strict=True)]
    total = _mean_series(workers)
    guess_ms, likeness = find_period(total)
    anchors = _anchors(total, guess_ms)
    offset_ms = _quiet(total, anchors, guess_ms)
    cuts = [_cut_iterations(_series(worker, workers[0]), anchors, offset_ms) for worker in workers]
    lengths = np.concatenate([cut.lengths_ms for cut in cuts])
    _check(lengths, cuts, guess_ms)
    period_ms = float(np.median(lengths))
    parts = [_samples(_series(worker, workers[0]), cut, period_ms) for worker, cut in zip(workers, cuts, strict=True)]
    at, sent, number = (np.concatenate(each) for each in zip(*parts, strict=True))
    _check_resolution(at, period_ms, _step_ms(workers))
    length_of = np.concatenate([cut.length_of for cut in cuts])
    payload = float(np.median(np.concatenate([cut.bytes[cut.usual] for cut in cuts])))
    begins_ns = workers[0].at_ns[0] + np.rint(cuts[0].begins_ms[:-1][cuts[0].usual] * 1e6).astype(np.int64)
    return FoldedIterations(at, sent, number, lengths, length_of, payload, likeness, begins_ns, offsets_ms)


class _IterationCuts(NamedTuple):
    """One worker's iterations: begins, bytes until then and in each, and whether they are usual.

    `anchors` and `begins_ms` have one more than `bytes` and `usual`: the end of the last one.
    """

    anchors: Floats
    begins_ms: Floats
    until: Floats
    bytes: Floats
    usual: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @property
    def length_of(self) -> Integers:
        """Return the iterations whose length is known: the last anchor is none of a whole iteration."""
        return np.flatnonzero(self.usual[:-1] & self.usual[1:])

    @property
    def lengths_ms(self) -> Floats:
        return np.diff(self.anchors)[self.length_of]


def _series(worker: WorkerCounter, first: WorkerCounter) -> Series:
    """Return a worker's counter in ms since the first worker's first sample, and in bytes since its own."""
    since_ns, since_bytes = worker.at_ns - first.at_ns[0], worker.payload_bytes - worker.payload_bytes[0]
    return Series(since_ns / 1e6, since_bytes.astype(np.float64))


def _check_counters(workers: Sequence[WorkerCounter]) -> None:
    if not workers or any(len(worker.at_ns) < 2 for worker in workers):
        raise NoPeriodError("found no samples of a worker's counter, expected those of some ten iterations")
    if any((np.diff(worker.payload_bytes) < 0).any() for worker in workers):
        raise NoPeriodError("found a byte counter that fell, expected one that only grows")


def _step_ms(workers: Sequence[WorkerCounter]) -> float:
    """Return the median time between the first worker's samples, ms."""
    return float(np.median(np.diff(workers[0].at_ns))) / 1e6


def _sample_evenly(workers: Sequence[WorkerCounter]) -> tuple[Floats, list[Floats]]:
    """Return common instants (ms), `OVERSAMPLING` times as dense as samples, and each worker's bytes until these."""
    each = [_series(worker, workers[0]) for worker in workers]
    step = _step_ms(workers) / OVERSAMPLING
    at = np.arange(max(series.at_ms[0] for series in each), min(series.at_ms[-1] for series in each), step)
    return at, [series.until(at) for series in each]


def _offsets_ms(workers: Sequence[WorkerCounter]) -> Floats:
    """Return by how much later each worker sends than the first one, by the cross-correlation of their rates.

    0 for less than `OFFSET_SAMPLES`, and for a worker that does not send like the first one.
    """
    at, until = _sample_evenly(workers)
    rates = [np.diff(each) - np.mean(np.diff(each)) for each in until] if len(at) > 1 else []
    steps = [_offset_steps(rates[0], rate) for rate in rates] or [0.0] * len(workers)
    apart = [each if abs(each) >= OFFSET_SAMPLES * OVERSAMPLING else 0.0 for each in steps]
    return np.array(apart) * _step_ms(workers) / OVERSAMPLING


def _offset_steps(first: Floats, other: Floats) -> float:
    """Return the least shift, in points, after which another worker's rate is most like the first one's."""
    length = len(first)
    scale = np.sqrt((first @ first) * (other @ other))
    if scale == 0:
        return 0.0
    spectrum = np.conj(scipy.fft.rfft(first, 2 * length)) * scipy.fft.rfft(other, 2 * length)
    likeness = np.roll(scipy.fft.irfft(spectrum, 2 * length), length) / scale
    if likeness.max() < MIN_LIKENESS:
        return 0.0
    inner = likeness[1:-1]
    peaks = 1 + np.flatnonzero((inner >= likeness[:-2]) & (inner > likeness[2:]))
    peaks = peaks[likeness[peaks] >= SAME_OFFSET * likeness.max()]
    nearest = int(peaks[np.abs(peaks - length).argmin()])
    return nearest - length + peak_vertex(likeness[nearest - 1 : nearest + 2])


def _shift(worker: WorkerCounter, offset_ms: float) -> WorkerCounter:
    return replace(worker, at_ns=worker.at_ns - round(offset_ms * 1e6))


def _mean_series(workers: Sequence[WorkerCounter]) -> Series:
    """Return a worker's mean counter, evenly and more finely sampled, from the first byte to the last."""
    at, until = _sample_evenly(workers)
    mean = np.mean(until, axis=0)
    busy = np.flatnonzero(np.diff(mean) > 0)
    if len(busy) == 0:
        raise NoPeriodError("found that nothing was sent, expected the bytes of some ten iterations")
    return Series(at[busy[0] : busy[-1] + 2], mean[busy[0] : busy[-1] + 2])


def _anchors(series: Series, period_ms: float) -> Floats:
    """Return one instant (ms) in each iteration, the same in all: where sending begins most clearly after quiet."""
    step = series.at_ms[1] - series.at_ms[0]
    before, here, after = (series.until(series.at_ms + shift) for shift in (-period_ms / 4, 0.0, period_ms / 4))
    prominence = (before + after - 2 * here) / (before + after - 2 * here).max()
    lags = np.arange(max(round(period_ms / 2 / step), 1), round(2 * period_ms / step) + 1)
    costs = TIGHTNESS * np.log(lags * step / period_ms) ** 2
    best, previous = prominence.copy(), np.full(len(prominence), -1)
    for at in range(lags[0], len(prominence)):
        scores = best[at - lags[lags <= at]] - costs[lags <= at]
        if scores.max() > 0:
            best[at] += scores.max()
            previous[at] = at - lags[scores.argmax()]
    chain = [int(best.argmax())]
    while previous[chain[-1]] >= 0:
        chain.append(int(previous[chain[-1]]))
    return series.at_ms[chain[::-1]]


def _quiet(series: Series, anchors: Floats, period_ms: float) -> float:
    """Return the middle of the longest quiet time, in ms from an anchor: between -`period_ms` and 0."""
    edges = np.linspace(-period_ms, 0.0, GRID + 1)
    rates = np.median(np.diff(series.until(anchors[:, None] + edges)), axis=0)
    quiet = rates < QUIET_SHARE * rates.max()
    if not quiet.any():
        return float(edges[rates.argmin()])
    turn = int(np.argmin(quiet))  # so that no quiet time goes over the array's end
    turned = np.concatenate([[False], np.roll(quiet, -turn), [False]])
    begins, ends = np.flatnonzero(turned[1:] & ~turned[:-1]), np.flatnonzero(turned[:-1] & ~turned[1:])
    longest = np.argmax(ends - begins)
    middle = (turn + (begins[longest] + ends[longest]) / 2) % GRID
    return float(np.interp(middle, np.arange(GRID + 1), edges))


def _cut_iterations(series: Series, anchors: Floats, offset_ms: float) -> _IterationCuts:
    """Return a worker's iterations, with anchors moved until each had sent its bytes when all others had."""
    like = np.ones(len(anchors) - 1, dtype=bool)
    for _ in range(ALIGNMENTS):
        until = series.until(anchors + offset_ms)
        sent = np.diff(until)
        middle = float(np.median(sent)) if len(sent) else 0.0
        usual = like & (np.abs(sent - middle) < SAME_BYTES * middle)
        if not usual.any():
            break
        when = np.interp(until[:-1, None] + SHARES * sent[:, None], series.bytes, series.at_ms) - anchors[:-1, None]
        off = when - np.median(when[usual], axis=0)
        late = np.median(off, axis=1)
        like = np.median(np.abs(off - late[:, None]), axis=1) < SAME_COURSE * np.median(np.diff(anchors))
        anchors = anchors + np.append(late, 0.0)
    until = series.until(anchors + offset_ms)
    return _IterationCuts(anchors, anchors + offset_ms, until, np.diff(until), usual & like)


def _check(lengths_ms: Floats, cuts: Sequence[_IterationCuts], guess_ms: float) -> None:
    found = min(int(cut.usual.sum()) for cut in cuts)
    if found < MIN_ITERATIONS or len(lengths_ms) == 0:
        raise NoPeriodError(
            f"found {found} like iterations of about {guess_ms:.0f} ms, expected {MIN_ITERATIONS} or more",
            "let the job run for longer",
        )
    low, middle, high = np.percentile(lengths_ms, [25, 50, 75])
    if (high - low) / middle > MAX_SPREAD:
        raise NoPeriodError(f"found iterations of {low:.0f} to {high:.0f} ms, expected lengths that are much the same")


def _check_resolution(at: Floats, period_ms: float, step_ms: float) -> None:
    """Raise NoPeriodError for a period of few samples, above all if those of all iterations are at the same places.

    A shorter period, of which this one is a multiple, would have the same samples.
    """
    samples = period_ms / step_ms
    places = np.sort(at)
    gap = np.diff(places, append=places[0] + 1).max()
    if samples < MIN_SAMPLES or (samples < ALIASED_SAMPLES and gap * samples > 0.5):
        raise NoPeriodError(
            f"found a period of {period_ms:.1f} ms, {samples:.1f} times the {step_ms:.6g} ms between samples: "
            "shorter iterations look the same",
            "sample more often, or at intervals that do not divide the period",
        )


def _samples(series: Series, cut: _IterationCuts, period_ms: float) -> tuple[Floats, Floats, Integers]:
    """Return a worker's samples as shares of the period and of their iteration's bytes, and the iteration's number."""
    number = np.searchsorted(cut.begins_ms, series.at_ms, side="right") - 1
    inside = (number >= 0) & (number < len(cut.usual))
    inside[inside] = cut.usual[number[inside]]
    number = number[inside]
    at = (series.at_ms[inside] - cut.begins_ms[number]) / period_ms
    sent = (series.bytes[inside] - cut.until[number]) / cut.bytes[number]
    return at[at <= 1], sent[at <= 1], number[at <= 1]
