# SPDX-License-Identifier: Apache-2.0
"""The period of a job's iterations, by the autocorrelation of the rate at which its workers send."""

from typing import NamedTuple

import numpy as np
import scipy

from analysis.statistics.cumulative_counter import Floats
from roundabout.core.errors import RoundaboutError

MIN_LIKENESS = 0.4
"""Least correlation of the rate with itself one period later; noise and random bursts stay below it."""
SAME_LIKENESS = 0.8
"""The period is the shortest lag with this share of the best correlation; longer lags are its multiples."""
OVERSAMPLING = 3
"""Points per sample at which the rate is correlated, so that a period does not fall between two points."""
MIN_SAMPLES = 7
"""Least number of samples in a period; a guess. Iterations of fewer than two samples show as longer ones, often of five
or six samples, and counters do not distinguish them.
"""
MIN_LAG = MIN_SAMPLES * OVERSAMPLING
"""Least number of points in a period."""
QUIET_SHARE = 0.1
"""Share of a job's sending rate below which it counts as computing."""


class NoPeriodError(RoundaboutError):
    """An error for counters that show no iterations."""


class Series(NamedTuple):
    """Bytes sent until `at_ms`."""

    at_ms: Floats
    bytes: Floats

    def until(self, at_ms: Floats) -> Floats:
        """Return the bytes sent until these instants, linear between samples."""
        return np.interp(at_ms, self.at_ms, self.bytes)


def find_period(series: Series) -> tuple[float, float]:
    """Return the shortest lag (ms) with the largest autocorrelation of the rate, and that correlation (of 1)."""
    sent = np.diff(series.bytes)
    if len(sent) < 2 * MIN_LAG or sent.std() < QUIET_SHARE * sent.mean():
        raise NoPeriodError("found that bytes were sent evenly, expected phases that send and phases that do not")
    likeness = _autocorrelation(sent)
    inner = likeness[1:-1]
    maxima = 1 + np.flatnonzero((inner >= likeness[:-2]) & (inner > likeness[2:]))
    peaks = maxima[maxima >= MIN_LAG]
    best = likeness[peaks].max(initial=0.0)
    if best < MIN_LIKENESS:
        raise NoPeriodError(
            f"found no period: the rate is like itself by {best:.2f} of 1 at best, expected {MIN_LIKENESS} or more",
            "the job must run alone, for ten iterations or more, each of them several samples long",
        )
    lag = peaks[np.argmax(likeness[peaks] >= SAME_LIKENESS * best)]
    for short in maxima[maxima < MIN_LAG]:
        if likeness[np.arange(short, lag, short)].min() >= SAME_LIKENESS * best:
            found = f"found iterations of about {short / OVERSAMPLING:.1f} samples, expected {MIN_SAMPLES} or more"
            raise NoPeriodError(f"{found}: shorter iterations look the same", "sample more often")
    vertex = peak_vertex(likeness[lag - 1 : lag + 2])
    return float((lag + vertex) * (series.at_ms[1] - series.at_ms[0])), float(likeness[lag])


def peak_vertex(around: Floats) -> float:
    """Return where the parabola through a maximum and its two neighbors has its vertex, in points from the maximum."""
    left, middle, right = around
    return float(0.5 * (left - right) / (left - 2 * middle + right))


def _autocorrelation(values: Floats) -> Floats:
    """Return the autocorrelation for lags up to half the length, each by as many values as overlap there.

    1 at lag 0.
    """
    length, lags = len(values), len(values) // 2 + 1
    spectrum = scipy.fft.rfft(values - values.mean(), 2 * length)
    products = scipy.fft.irfft(np.abs(spectrum) ** 2, 2 * length)[:lags]
    result: Floats = products / products[0] * length / np.arange(length, length - lags, -1)
    return result
