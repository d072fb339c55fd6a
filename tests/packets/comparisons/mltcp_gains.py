# SPDX-License-Identifier: Apache-2.0
"""Gains of MLTCP over its base in a stored run of `mltcp-rates` or `mltcp-queues`, seed by seed.

    python -m tests.packets.comparisons.mltcp_gains RUN

prints the figures of docs/results/mltcp-rates.md. Repetitions that one of both variants lacks do not count.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from analysis.reading.cells import CellTrials, cells_of
from analysis.reading.congestion.marks_and_drops import count_signals
from analysis.reading.phase_overlap import Spans, compute_offsets
from analysis.reading.speedups import baseline_of
from analysis.reading.traces import shared_share_of_spans, spans_of_cells
from analysis.statistics.intervals import Array
from roundabout.api import open_run

TOLERANCE = 0.05
"""Jobs are apart once no iteration takes longer than alone by more than this share. The bound is ours, as for overlaps.
"""
LAST = 10
"""Number of last iterations that have figures of their own. It is ours."""


@dataclass(frozen=True)
class Repetition:
    """Iteration times of one trial, ms, of shape (jobs, iterations), its spans, and marks and drops by iteration."""

    times: Array
    spans: Spans
    lost: Array

    @property
    def last(self) -> Array:
        """Return the times of the last iterations."""
        return self.times[:, -LAST:]

    @property
    def last_lost(self) -> np.float64:
        """Return the mean number of marks and drops in the last iterations."""
        return np.float64(np.nanmean(self.lost[-LAST:]))

    @property
    def offset_ms(self) -> float:
        """Return the distance of the first job's last begin to send from the nearest begin of another job."""
        return float(min(each[-1] for each in compute_offsets(self.spans).values()))

    @property
    def sending_at_once(self) -> float:
        """Return the share of the last iterations' time of sending in which several jobs send, in percent."""
        ends = next(iter(self.spans.values()))[:, 1]
        return 100 * shared_share_of_spans(self.spans.values(), ends[-LAST - 1], ends[-1])


def read_repetitions(cell: CellTrials, spans: Mapping[str, Spans], lost: Mapping[str, Array]) -> list[Repetition]:
    times = zip(*map(cell.repetitions, cell.jobs), strict=True)
    return [
        Repetition(np.array(each), spans[trial], lost[trial]) for trial, each in zip(cell.trials, times, strict=True)
    ]


def find_apart(cell: CellTrials, each: Repetition) -> float:
    """Return the first iteration from which all stay as short as alone, counted from 1; infinite if none does."""
    alone_ms = np.array([[cell.spec.jobs[job].profile.alone_ms] for job in cell.jobs])
    late = np.flatnonzero((each.times > (1 + TOLERANCE) * alone_ms).any(axis=0))
    first = int(late[-1]) + 2 if len(late) else 1
    return first if first <= each.times.shape[1] else np.inf


def p99(times: Iterable[Array]) -> float:
    return float(np.quantile(np.stack(list(times)), 0.99))


def describe(figures: Iterable[float], digits: int = 0) -> str:
    return ", ".join(f"{each:.{digits}f}" for each in figures)


def describe_cell(cell: CellTrials, found: list[Repetition]) -> str:
    every = np.stack([each.times for each in found])
    return "\n  ".join(
        [
            cell.name,
            f"mean {describe((each.times.mean() for each in found), 1)} ms, {every.min():.0f} to {every.max():.0f}",
            f"last {LAST}: {describe((each.last.mean() for each in found), 1)} ms",
            f"sending at once then: {describe(each.sending_at_once for each in found)} %",
            f"offset in the end: {describe(each.offset_ms for each in found)} ms",
            f"apart from iteration: {describe(find_apart(cell, each) for each in found)}",
            f"marks and drops an iteration: {describe(np.nanmean(each.lost) for each in found)}",
            f"the same, last {LAST}: {describe(each.last_lost for each in found)}",
        ]
    )


def describe_gains(slow: list[Repetition], fast: list[Repetition]) -> str:
    pairs = list(zip(slow, fast, strict=True))
    tail = p99(each.times for each in slow) / p99(each.times for each in fast)
    last_tail = p99(each.last for each in slow) / p99(each.last for each in fast)
    return "\n  ".join(
        [
            f"  gain of means: {describe((one.times.mean() / other.times.mean() for one, other in pairs), 2)}",
            f"gain of p99, all repetitions: {tail:.2f}",
            f"last {LAST}, of means: {describe((one.last.mean() / other.last.mean() for one, other in pairs), 2)}",
            f"last {LAST}, of p99, all repetitions: {last_tail:.2f}",
            f"fewer marks and drops: {describe((np.nanmean(a.lost) / np.nanmean(b.lost) for a, b in pairs), 2)}",
            f"the same, last {LAST}: {describe((a.last_lost / b.last_lost for a, b in pairs), 1)}",
        ]
    )


def main() -> None:
    run = open_run(sys.argv[1])
    cells = cells_of(run)
    spans, lost = spans_of_cells(run, cells), count_signals(run, cells)
    for cell in cells:
        base = baseline_of(cells, cell, "fair") or baseline_of(cells, cell, cell.variant.removeprefix("mltcp-"))
        if cell.variant.startswith("mltcp-") and base:
            slow, fast = (read_repetitions(each, spans, lost) for each in (base, cell))
            common = min(len(slow), len(fast))
            print(describe_cell(base, slow[:common]))
            print(describe_cell(cell, fast[:common]))
            with np.errstate(divide="ignore"):  # Where no packet is marked or dropped any more, the ratio is infinite.
                print(describe_gains(slow[:common], fast[:common]))


if __name__ == "__main__":
    main()
