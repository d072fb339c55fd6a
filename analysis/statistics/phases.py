# SPDX-License-Identifier: Apache-2.0
"""A job's period and phases, from its workers' byte counters alone (docs/how-to/profiling.md)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.iteration_period import QUIET_SHARE, NoPeriodError
from analysis.statistics.phase_folding import FoldedIterations, WorkerCounter, fold_iterations

DETAIL = 0.005
"""Largest distance of the broken line from the samples, as a share of an iteration's bytes."""
SHORTEST = 0.015
"""Least length of a phase, as a share of an iteration."""
SAME_RATE = 0.1
"""Consecutive phases whose rates differ by less than this share are one phase."""
MEDIAN_POINTS = 8
"""Least number of neighboring samples that one median replaces: single samples may be read late or be unusual."""
OUTLINE_POINTS = 200
"""Largest number of medians in an iteration, three in the shortest phase; more of them would follow the noise."""
SCATTER = 0.1
"""Largest distance of nine samples in ten from the iterations' mean course, as a share of an iteration's bytes."""
EPSILON = 1e-6
"""Least time and least bytes, as shares, in place of 0 in divisions and bounds."""
TOLERANCE = 1e-6
"""Relative change of a fit's cost that ends the fit: smaller ones only move vertices along straight pieces."""
RESAMPLINGS = 2000
"""Number of resamplings; 50 lie beyond each end of a 95 % interval."""
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval, from resampled blocks of iterations."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FoundPhase:
    """A part of an iteration with a constant rate; it is computing if `sends` is False.

    `begin_ms` counts from the iteration's beginning; `bytes` is one worker's payload, and `gbps` its rate.
    """

    sends: bool
    begin_ms: Estimate
    duration_ms: Estimate
    bytes: Estimate
    gbps: Estimate


@dataclass(frozen=True)
class FoundProfile:
    """A job's profile as counters show it: the period, and the phases in order, the longest quiet one first.

    `iterations` is the number of iterations used. `correlation` is that of the rate with itself one period
    later. `outside_share` is the share of an iteration's bytes outside all sending phases.
    """

    period_ms: Estimate
    phases: tuple[FoundPhase, ...]
    iterations: int
    correlation: float
    outside_share: float


def find_phases(workers: Sequence[WorkerCounter]) -> FoundProfile:
    """Find the period and the phases of a job, from its workers' counters while the job had the network to itself.

    Raises:
        NoPeriodError: see `fold_iterations` and `find_phases_in`.
    """
    return find_phases_in(fold_iterations(workers))


def find_phases_in(folded: FoldedIterations) -> FoundProfile:
    """Find the period and the phases of a job whose iterations are folded.

    Phases are the pieces of a broken line fitted to the samples of all iterations. It has the fewest vertices with
    which it stays within `DETAIL` of the iterations' mean course.

    Raises:
        NoPeriodError: bytes are sent at one rate only.
    """
    line = merge_short_pieces(fit_fewest_vertices(folded.points, find_outline(folded.points)), folded.points)
    counts = folded.resample(RESAMPLINGS, np.random.default_rng(0))
    periods_ms = np.concatenate([[folded.period_ms], folded.resampled_periods_ms(counts)])
    lines = np.concatenate([line[None], resample_lines(line, folded, counts)])
    phases = _phases(lines, periods_ms, folded.bytes)
    if len(phases) < 2:
        raise NoPeriodError(f"found one rate only in iterations of {folded.period_ms:.0f} ms, expected several phases")
    return FoundProfile(
        period_ms=_estimate(periods_ms),
        phases=phases,
        iterations=folded.iterations,
        correlation=folded.likeness,
        outside_share=sum(phase.bytes.value for phase in phases if not phase.sends) / folded.bytes,
    )


def find_outline(points: Floats) -> Floats:
    """Return the cumulative bytes of an iteration from (0, 0) to (1, 1).

    Medians of `MEDIAN_POINTS` neighboring points or more.
    """
    ordered = points[points[:, 0].argsort()]
    count = min(max(len(points) // MEDIAN_POINTS, 1), OUTLINE_POINTS)
    medians = [np.median(each, axis=0) for each in np.array_split(ordered, count)]
    return np.vstack([(0.0, 0.0), *medians, (1.0, 1.0)])


def fit_fewest_vertices(points: Floats, outline: Floats) -> Floats:
    """Return the broken line with the fewest vertices that is near all of the outline, tried from the least bend on.

    Near is `DETAIL`, or more if one sample in ten is farther off, or if a line without short pieces is.

    Raises NoPeriodError if no line is near the samples.
    """
    scatter = float(np.percentile(_distances(outline, points), 90))
    if scatter > SCATTER:
        found = f"found samples {100 * scatter:.0f} % of an iteration's bytes off the mean course of iterations"
        raise NoPeriodError(f"{found}, expected {100 * SCATTER:.0f} % at most: the job's hosts do not send alike")
    line = fit_line(_drop_short_pieces(simplify_line(outline, max(DETAIL, scatter))), outline)
    detail = max(DETAIL, scatter, float(_distances(line, outline).max()))
    while len(line) > 2:
        chords = [np.interp(line[each, 0], *line[[each - 1, each + 1]].T) for each in range(1, len(line) - 1)]
        bends = np.abs(line[1:-1, 1] - chords)
        fewer = (fit_line(np.delete(line, vertex + 1, axis=0), outline) for vertex in bends.argsort())
        shorter = next((each for each in fewer if _distances(each, outline).max() <= detail), None)
        if shorter is None:
            break
        line = shorter
    return line


def _distances(line: Floats, points: Floats) -> Floats:
    return np.abs(np.interp(points[:, 0], *line.T) - points[:, 1])


def simplify_line(points: Floats, detail: float) -> Floats:
    """Return those of `points` that a broken line needs to stay within `detail` of all (Douglas and Peucker, 1973)."""
    # The ends stay in any case. Where both are at one instant, the line misses one of them however it is split.
    distance = _distances(points[[0, -1]], points)[1:-1]
    if distance.max(initial=0.0) <= detail:
        return points[[0, -1]]
    farthest = int(distance.argmax()) + 1
    return np.vstack([simplify_line(points[: farthest + 1], detail)[:-1], simplify_line(points[farthest:], detail)])


def _drop_short_pieces(line: Floats) -> Floats:
    """Return the line without the begins of pieces that are too short, without a fit for each."""
    lengths = np.diff(line[1:-1, 0])
    if lengths.min(initial=1.0) >= SHORTEST:
        return line
    return _drop_short_pieces(np.delete(line, lengths.argmin() + 1, axis=0))


def merge_short_pieces(line: Floats, points: Floats) -> Floats:
    """Return the line fitted to the points, without pieces that are too short to be separable from their neighbors."""
    line = fit_line(line, points)
    lengths = np.diff(line[1:-1, 0])
    if lengths.min(initial=1.0) >= SHORTEST:
        return line
    return merge_short_pieces(np.delete(line, lengths.argmin() + 1, axis=0), points)


def fit_line(line: Floats, points: Floats) -> Floats:
    """Return the broken line with as many vertices that lies nearest to all points, except a few outliers."""
    at, sent = points.T

    def misses(inner: Floats) -> Floats:
        missed: Floats = np.interp(at, *_monotonic(inner).T) - sent
        return missed

    inner = line[1:-1].ravel()
    if len(inner) == 0:
        return line
    # Exact derivatives take the time of one evaluation, however many vertices noise has left. lsmr, since a dense
    # decomposition of so small a problem only wakes up other cores.
    return _monotonic(
        scipy.optimize.least_squares(
            misses,
            inner,
            jac=lambda inner: _line_derivatives(_monotonic(inner), at),
            loss="soft_l1",
            f_scale=DETAIL,
            tr_solver="lsmr",
            ftol=TOLERANCE,
            max_nfev=100,
        ).x
    )


def resample_lines(line: Floats, folded: FoldedIterations, counts: Integers) -> Floats:
    """Return the line fitted to each resampling; shape (draws, vertices, 2).

    Each is one Newton step away from the line fitted to all iterations, which replaces 2,000 fits (Salibian-Barrera and
    Zamar, Bootstrapping Robust Estimates of Regression, Ann. Stat. 2002). So each sample is visited once.
    """
    inner = line[1:-1].ravel()
    if not len(inner):
        return np.repeat(line[None], len(counts), axis=0)
    place = np.searchsorted(np.unique(folded.number), folded.number)
    missed = (np.interp(folded.at, *line.T) - folded.sent) / DETAIL
    derivatives = _line_derivatives(line, folded.at) / DETAIL
    # First and second derivatives of each iteration's cost, which is soft_l1 as in `fit_line`.
    weighted = derivatives.multiply((missed / np.sqrt(1 + missed**2))[:, None]).tocsr()
    curved = derivatives.multiply(((1 + missed**2) ** -0.75)[:, None]).tocsr()
    lasts = np.cumsum(np.bincount(place, minlength=counts.shape[1]))
    own = np.split(np.argsort(place, kind="stable"), lasts[:-1])
    gradients = np.array([np.asarray(weighted[samples].sum(axis=0)).ravel() for samples in own])
    curvatures = np.array([(curved[samples].T @ curved[samples]).toarray() for samples in own])
    drawn = np.tensordot(counts, curvatures, axes=1)
    ridge = EPSILON * np.trace(drawn, axis1=1, axis2=2)[:, None, None] * np.eye(inner.size)
    steps = np.linalg.solve(drawn + ridge, ((counts - 1) @ gradients)[:, :, None])
    return _monotonic(inner - steps[:, :, 0])


def _monotonic(inner: Floats) -> Floats:
    """Return the lines with these inner vertices, x and y in turn, whose instants do not fall; (..., vertices, 2)."""
    vertices = inner.reshape(*inner.shape[:-1], -1, 2)
    at = np.maximum.accumulate(np.clip(vertices[..., :1], 0, 1), axis=-2)
    ends = [(0, 0)] * (inner.ndim - 1) + [(1, 1), (0, 0)]
    lines: Floats = np.pad(np.concatenate([at, vertices[..., 1:]], axis=-1), ends)
    lines[..., -1, :] = 1
    return lines


def _line_derivatives(line: Floats, at: Floats) -> "scipy.sparse.csr_matrix":
    """Return the derivatives of a broken line at the instants `at` by its inner vertices' coordinates.

    A row has only four of them other than 0, those by the ends of the piece in which the instant is.
    """
    piece = np.clip(np.searchsorted(line[:, 0], at, side="right") - 1, 0, len(line) - 2)
    width, height = np.maximum(np.diff(line, axis=0)[piece], (EPSILON, -np.inf)).T
    share, slope = (at - line[piece, 0]) / width, height / width
    derivatives = np.column_stack([slope * (share - 1), 1 - share, -slope * share, share])
    columns = 2 * piece[:, None] + np.arange(4)
    rows = np.arange(0, derivatives.size + 1, 4)
    every = scipy.sparse.csr_matrix((derivatives.ravel(), columns.ravel(), rows), (len(at), line.size))
    return every[:, 2:-2]


def _phases(lines: Floats, periods_ms: Floats, bytes_: float) -> tuple[FoundPhase, ...]:
    """Return the phases by the first of these lines with their periods in ms, and their variation over the others."""
    pieces = np.diff(lines, axis=1) * np.stack([periods_ms, np.full(len(lines), bytes_)], axis=1)[:, None]
    groups = _merge_pieces(pieces[0])
    sums = np.stack([pieces[:, group].sum(axis=1) for group in groups], axis=1)
    durations, sent = np.moveaxis(sums, 2, 0)
    begins = np.cumsum(durations, axis=1) - durations
    rates = sent * 8 / np.maximum(durations, EPSILON) / 1e6
    least = _quiet_rate(pieces[0])
    return tuple(
        FoundPhase(
            bool(rates[0, index] * 1e6 / 8 >= least),
            *(_estimate(each[:, index]) for each in (begins, durations, sent, rates)),
        )
        for index in range(len(groups))
    )


def _merge_pieces(pieces: Floats) -> list[list[int]]:
    """Return which pieces of a line, shape (pieces, 2), are one phase.

    Neighbors of one rate, and the last with the first.

    An iteration was cut in the middle of its longest quiet time, which is both its first and its last piece.
    """
    rates = pieces[:, 1] / np.maximum(pieces[:, 0], EPSILON)
    rates[rates < _quiet_rate(pieces)] = 0
    groups = [[0]]
    for index in range(1, len(pieces)):
        before = rates[groups[-1][0]]
        if abs(rates[index] - before) <= SAME_RATE * before:
            groups[-1].append(index)
        else:
            groups.append([index])
    return [groups[-1] + groups[0], *groups[1:-1]] if len(groups) > 1 else groups


def _quiet_rate(pieces: Floats) -> float:
    """Return the bytes per ms below which a phase is quiet: a share of the rate at which a byte is sent on average."""
    durations, sent = np.maximum(pieces[:, 0], EPSILON), pieces[:, 1]
    return QUIET_SHARE * float(np.average(sent / durations, weights=sent))


def _estimate(values: Sequence[float] | Floats) -> Estimate:
    """Return the first value, and an interval from all others."""
    value, (low, high) = float(values[0]), np.percentile(values[1:], INTERVAL)
    return Estimate(value, min(float(low), value), max(float(high), value))
