# SPDX-License-Identifier: Apache-2.0
"""A job's exchanges as byte counters of its workers, which are folded like any others (docs/how-to/profiling.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.records.call import RecordError
from analysis.records.collective_groups import ALIKE, CollectiveFamily, sent_bytes
from analysis.records.job import Exchange, Job
from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.iteration_period import NoPeriodError
from analysis.statistics.phase_folding import FoldedIterations, WorkerCounter, fold_iterations
from analysis.statistics.phases import FoundProfile, find_phases_in

SAMPLES = 4_000
"""Number of samples of each byte counter."""
MIN_SAMPLES = 60
"""Least number of samples in an iteration; with fewer, a shorter part of the record, around its middle, is used."""
ZOOM = 4
MAX_ZOOMS = 6
LONGEST_NS = 2**63 // (2 * SAMPLES)
"""Longest record, 13 days: times of samples stay within 64 bits. A longer record has a wrong time."""
MIN_MS = 0.001
"""Least duration of a phase, ms, because profiles have times in microseconds."""
OVERLAP = 0.05
"""Least share of a phase's bytes that a family must have to be named."""


@dataclass(frozen=True)
class PhasePart:
    """The part of a family of collectives in a found phase, as shares of the phase's bytes and of its time."""

    family: CollectiveFamily
    bytes_share: float
    time_share: float


@dataclass(frozen=True)
class RecordTimeline:
    """The found iterations, and the parts of each phase, in order; `used_ms` is the used length of the record."""

    found: FoundProfile
    parts: tuple[tuple[PhasePart, ...], ...]
    used_ms: float


def find_iterations(job: Job, families: Sequence[CollectiveFamily]) -> RecordTimeline:
    """Find the iterations of a job by folding its busiest worker's bytes over time.

    The first step that the profiler names is left out. Raises RecordError if no iterations are found, or if times are
    implausible.
    """
    worker = busiest_worker(job, families)
    begin_ns = job.steps_ns[1][0] if len(job.steps_ns) > 1 else job.exchanges[0].begin_ns
    end_ns = max(each.end_ns for each in job.exchanges)
    if end_ns <= begin_ns:
        raise RecordError(
            f"{job.file_names}: found no call that ends after the first step, expected ten iterations or more"
        )
    if end_ns - begin_ns >= LONGEST_NS:
        days = (end_ns - begin_ns) / 86400e9
        raise RecordError(f"{job.file_names}: found calls over {days:.1f} days, expected less than 13: a time is wrong")
    try:
        folded, looked_at_ms = _fold(_cumulative_bytes(job.exchanges, families, worker), begin_ns, end_ns)
        found = find_phases_in(folded)
    except NoPeriodError as error:
        raise RecordError(f"{job.file_names}: {error.message}", error.hint) from error
    if (shortest_ms := min(phase.duration_ms.value for phase in found.phases)) < MIN_MS:
        what = f"a phase of {shortest_ms * 1e6:.0f} ns, expected {MIN_MS * 1e6:.0f} at least"
        raise RecordError(f"{job.file_names}: found {what}", "are its times in another unit?")
    return RecordTimeline(found, tuple(_parts(families, job.exchanges, worker, found, folded)), looked_at_ms)


def busiest_worker(job: Job, families: Sequence[CollectiveFamily]) -> int:
    """Return the first worker of those that send most.

    All members of a group record its exchanges alike; stages do not.
    """
    sums = {rank: sum(each.bytes for each in families if each.seen_by(rank)) for rank in range(len(job.records))}
    most = max(sums.values())
    return next(rank for rank, size in sums.items() if size >= (1 - ALIKE) * most)


def exchanges_of(
    exchanges: Sequence[Exchange], families: Sequence[CollectiveFamily], worker: int
) -> Iterator[tuple[Exchange, CollectiveFamily]]:
    """Yield the exchanges that a worker counts, and the family of each."""
    wanted = [(family, family.seen_by(worker)) for family in families]
    for each in exchanges:
        for family, members in wanted:
            if each.members in members and family.contains(each):
                yield each, family


class _CumulativeBytes:
    """Bytes sent until an instant: each exchange sends evenly from its begin to its end."""

    def __init__(self, begins_ns: Integers, ends_ns: Integers, sizes: Floats) -> None:
        edges = np.concatenate([begins_ns, ends_ns])
        slopes = sizes / np.maximum(ends_ns - begins_ns, 1)
        order = edges.argsort(kind="stable")
        self._at_ns = edges[order]
        rates = np.cumsum(np.concatenate([slopes, -slopes])[order])
        self._bytes = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(self._at_ns))])

    def sampled(self, at_ns: Integers) -> WorkerCounter:
        since_ns = (at_ns - self._at_ns[0]).astype(np.float64)
        sent = np.interp(since_ns, (self._at_ns - self._at_ns[0]).astype(np.float64), self._bytes)
        return WorkerCounter(at_ns, np.maximum.accumulate(np.rint(sent).astype(np.int64)))


def _cumulative_bytes(
    exchanges: Sequence[Exchange], families: Sequence[CollectiveFamily], worker: int
) -> _CumulativeBytes:
    counted = [each for each, _ in exchanges_of(exchanges, families, worker)]
    begins, ends = (np.array([getattr(each, name) for each in counted], np.int64) for name in ("begin_ns", "end_ns"))
    return _CumulativeBytes(
        begins, np.maximum(ends, begins + 1), np.array([sent_bytes(each) for each in counted], np.float64)
    )


def _fold(total: _CumulativeBytes, begin_ns: int, end_ns: int) -> tuple[FoldedIterations, float]:
    """Return a folded counter, and its ms: as much of the middle as shows iterations in detail.

    Raises NoPeriodError.
    """
    why: NoPeriodError | None = None
    middle_ns, length_ns = (begin_ns + end_ns) // 2, end_ns - begin_ns
    for _ in range(MAX_ZOOMS):
        at_ns = middle_ns - length_ns // 2 + np.arange(SAMPLES + 1) * length_ns // SAMPLES
        try:
            folded = fold_iterations([total.sampled(at_ns)])
            if folded.period_ms >= MIN_SAMPLES * length_ns / SAMPLES / 1e6:
                return folded, length_ns / 1e6
        except NoPeriodError as error:
            why = why or error
        length_ns //= ZOOM
    raise why or NoPeriodError("found iterations of a few samples only, expected longer ones")


def _parts(
    families: Sequence[CollectiveFamily],
    exchanges: Sequence[Exchange],
    worker: int,
    found: FoundProfile,
    folded: FoldedIterations,
) -> Iterator[tuple[PhasePart, ...]]:
    """Yield the families of each phase's bytes. An iteration is cut in the middle of its first phase."""
    turn_ms = found.phases[0].duration_ms.value / 2
    here: list[list[_FamilyShare]] = [[] for _ in found.phases]
    for each, family in exchanges_of(exchanges, families, worker):
        number = int(np.searchsorted(folded.begins_ns, (each.begin_ns + each.end_ns) // 2, side="right")) - 1
        begin_ms, end_ms = ((at_ns - int(folded.begins_ns[number])) / 1e6 for at_ns in (each.begin_ns, each.end_ns))
        if number < 0 or (begin_ms + end_ms) / 2 >= folded.period_ms:
            continue
        turned_ms = turn_ms - (folded.period_ms if begin_ms + turn_ms >= folded.period_ms else 0.0)
        at = _FamilyShare(begin_ms + turned_ms, end_ms + turned_ms, sent_bytes(each), family)
        for index, part in _divide_by_phase(at, found):
            here[index].append(part)
    yield from map(_merge_by_family, here)


class _FamilyShare(NamedTuple):
    """A family's bytes in a part of an iteration."""

    begin_ms: float
    end_ms: float
    bytes: float
    family: CollectiveFamily


def _divide_by_phase(share: _FamilyShare, found: FoundProfile) -> Iterator[tuple[int, _FamilyShare]]:
    """Yield the shares by sending phase; all in the nearest one if it overlaps none."""
    sending = [(index, phase) for index, phase in enumerate(found.phases) if phase.sends]
    ends = [(phase.begin_ms.value, phase.begin_ms.value + phase.duration_ms.value) for _, phase in sending]
    common_ms = [min(share.end_ms, end) - max(share.begin_ms, begin) for begin, end in ends]
    lasts_ms = share.end_ms - share.begin_ms
    if max(common_ms) <= 0:
        yield sending[int(np.argmax(common_ms))][0], share
        return
    for (index, _), (begin, end), common in zip(sending, ends, common_ms, strict=True):
        if common > 0:
            within = max(share.begin_ms, begin), min(share.end_ms, end)
            yield index, _FamilyShare(*within, share.bytes * common / lasts_ms, share.family)


def _merge_by_family(here: Sequence[_FamilyShare]) -> tuple[PhasePart, ...]:
    """Return the families of a phase, in the order in which they come."""
    sizes: dict[CollectiveFamily, float] = {}
    times_ms: dict[CollectiveFamily, float] = {}
    when: dict[CollectiveFamily, list[float]] = {}
    for share in here:
        sizes[share.family] = sizes.get(share.family, 0.0) + share.bytes
        times_ms[share.family] = times_ms.get(share.family, 0.0) + share.end_ms - share.begin_ms
        when.setdefault(share.family, []).append(share.begin_ms + share.end_ms)
    named = [family for family in sizes if sizes[family] >= OVERLAP * sum(sizes.values())]
    named.sort(key=lambda family: float(np.median(when[family])))
    total, lasted_ms = (sum(each[family] for family in named) for each in (sizes, times_ms))
    return tuple(PhasePart(family, sizes[family] / total, times_ms[family] / lasted_ms) for family in named)
