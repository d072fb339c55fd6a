# SPDX-License-Identifier: Apache-2.0
"""A job's iterations by the sequence of its calls, which repeats however long single calls take.

Jobs that share links have iterations of unlike lengths, which byte counters do not show one by one
(`record_timeline`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.records.call import RecordError
from analysis.records.collective_groups import CollectiveFamily, groups_of, sent_bytes
from analysis.records.job import Exchange, Job
from analysis.records.record_timeline import busiest_worker, exchanges_of
from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.phases import SHORTEST
from roundabout.spec.patterns import Pattern

MIN_ITERATIONS = 5
"""Least number of iterations that show a sequence that repeats."""
SAME_CALLS = 0.95
"""Least share of calls that are like those one iteration later. Fewer show no sequence that repeats."""
SAME_GAPS = 0.1
"""Among calls that are all alike, gaps decide: the shortest sequence counts after which gaps repeat, except for this
variance above that of the best one, as a share of the mean gap squared. A guess.
"""
MAX_CALLS = 4096
"""Largest number of calls in an iteration."""


@dataclass(frozen=True)
class CallPhase:
    """A part of an iteration, with its mean duration. `bytes` are the mean bytes that a worker sends.

    A job without `bytes` computes. `groups` are those of the pattern; None for one of all ranks.
    """

    duration_ms: float
    bytes: float = 0.0
    pattern: Pattern = "ring"
    groups: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class CallIterations:
    """Iterations of a job, each from the end of one iteration's last call to the end of the next one's.

    `edges_ns` has their begins and the end of the last one, on rank 0's clock; shape (iterations + 1,). `computing_ms`
    is the time without calls, that of the slowest worker, and `waited_ms` is by how much that of the mean worker is
    shorter; shapes (iterations,).
    """

    edges_ns: Integers
    computing_ms: Floats
    waited_ms: Floats
    phases: tuple[CallPhase, ...]

    @property
    def times_ms(self) -> Floats:
        """Return the time of each iteration, ms; shape (iterations,)."""
        return np.diff(self.edges_ns) / 1e6

    def between(self, begin_ns: int, end_ns: int) -> "CallIterations":
        """Return the iterations that begin and end within a time. Phases stay the means of all."""
        inside = np.flatnonzero((self.edges_ns[:-1] >= begin_ns) & (self.edges_ns[1:] <= end_ns))
        first, last = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
        return replace(
            self,
            edges_ns=self.edges_ns[first : last + 1],
            computing_ms=self.computing_ms[first:last],
            waited_ms=self.waited_ms[first:last],
        )


def find_call_iterations(job: Job, families: Sequence[CollectiveFamily]) -> CallIterations:
    """Return the iterations of a job by the calls of its busiest worker, without the first step that is named.

    Raises RecordError if no sequence of calls repeats.
    """
    counted = _counted_calls(job, families)
    calls = [each for each, _ in counted]
    if len(calls) < MIN_ITERATIONS:
        raise _no_sequence(job, f"{len(calls)} calls")
    gaps_ns, done_ns = _gaps_and_ends(calls)
    length = _sequence_length(calls, gaps_ns)
    if length is None:
        raise _no_sequence(job, f"{len(calls)} calls in no sequence that repeats")
    first = _first_call(gaps_ns, length)
    count = (len(calls) - first) // length
    if count < MIN_ITERATIONS:
        raise _no_sequence(job, f"{count} iterations of {length} calls")
    inside = slice(first, first + count * length)
    edges_ns = done_ns[first - 1 : first + count * length : length]
    waited_ns, sizes = (
        np.array([measure(each) for each in calls[inside]], np.int64).reshape(count, length)
        for measure in (lambda each: each.waited_ns, sent_bytes)
    )
    gaps_ns, spent_ns = (each[inside].reshape(count, length) for each in (gaps_ns, np.diff(done_ns, prepend=0)))
    gap_ms, busy_ms = gaps_ns.mean(axis=0) / 1e6, np.maximum(spent_ns - gaps_ns, 0).mean(axis=0) / 1e6
    computes = gap_ms >= SHORTEST * float((gap_ms + busy_ms).sum())
    own = [(family.pattern, groups_of(family, job)) for _, family in counted[inside][:length]]
    return CallIterations(
        edges_ns=edges_ns,
        computing_ms=gaps_ns[:, computes].sum(axis=1) / 1e6,
        waited_ms=waited_ns[:, computes].sum(axis=1) / 1e6,
        phases=_phases(gap_ms, busy_ms, computes, sizes.mean(axis=0), own),
    )


def _counted_calls(job: Job, families: Sequence[CollectiveFamily]) -> list[tuple[Exchange, CollectiveFamily]]:
    """Return the calls of a job's busiest worker after the first step, in the order in which they were entered."""
    begin_ns = job.steps_ns[1][0] if len(job.steps_ns) > 1 else job.exchanges[0].begin_ns
    counted = exchanges_of(job.exchanges, families, busiest_worker(job, families))
    # Calls that overlap may begin to send in another order.
    return sorted((each for each in counted if each[0].begin_ns >= begin_ns), key=lambda each: each[0].entered_ns)


def _gaps_and_ends(calls: Sequence[Exchange]) -> tuple[Integers, Integers]:
    """Return the time without calls before each call, and when it and all before it have ended; shapes (calls,)."""
    begins_ns, ends_ns = (
        np.array(each, np.int64) for each in zip(*((call.begin_ns, call.end_ns) for call in calls), strict=True)
    )
    done_ns = np.maximum.accumulate(ends_ns)
    before_ns = np.concatenate([begins_ns[:1], done_ns[:-1]])
    return np.maximum(begins_ns - before_ns, 0), done_ns


def _no_sequence(job: Job, found: str) -> RecordError:
    expected = f"{MIN_ITERATIONS} iterations with the same calls at least"
    return RecordError(f"{job.file_names}: found {found}, expected {expected}", "record ten iterations or more")


def _sequence_length(calls: Sequence[Exchange], gaps_ns: Integers) -> int | None:
    """Return the number of calls of an iteration; None if no sequence of calls repeats."""
    numbers: dict[tuple[object, ...], int] = {}
    keys = np.array([numbers.setdefault(_likeness(each), len(numbers)) for each in calls])
    longest = min(len(keys) // MIN_ITERATIONS, MAX_CALLS)
    found = [length for length in range(1, longest + 1) if np.mean(keys[length:] == keys[:-length]) >= SAME_CALLS]
    scatter = {length: _gap_scatter(gaps_ns, length) for length in found}
    best = min(scatter.values(), default=0.0)
    return next((length for length in found if scatter[length] <= best + SAME_GAPS), None)


def _likeness(call: Exchange) -> tuple[object, ...]:
    """Return the properties of a call that one iteration later a call has, too. Sizes of all-to-alls may vary."""
    return call.kind, call.members, None if call.kind == "all-to-all" else call.payload_bytes


def _gap_scatter(gaps_ns: Integers, length: int) -> float:
    """Return the variance of gaps at equal places of a sequence, as a share of the mean gap squared."""
    count = (len(gaps_ns) - 1) // length
    folded = gaps_ns[1 : 1 + count * length].reshape(count, length).astype(np.float64)
    mean = float(folded.mean())
    return float(folded.var(axis=0, ddof=1).mean()) / mean**2 if mean else 0.0


def _first_call(gaps_ns: Integers, length: int) -> int:
    """Return the first call of the first whole iteration: the one after the longest gap. It has a call before it."""
    count = (len(gaps_ns) - 1) // length
    usual = np.median(gaps_ns[1 : 1 + count * length].reshape(count, length), axis=0)
    return 1 + int(usual.argmax())


def _phases(
    gaps_ms: Floats,
    busy_ms: Floats,
    computes: npt.NDArray[np.bool_],
    sizes: Floats,
    families: Sequence[tuple[Pattern, tuple[tuple[int, ...], ...] | None]],
) -> tuple[CallPhase, ...]:
    """Return the phases of an iteration. Consecutive calls of one family are one phase, with short gaps in it."""
    found: list[CallPhase] = []
    for gap_ms, lasts_ms, is_computing, size, family in zip(gaps_ms, busy_ms, computes, sizes, families, strict=True):
        if is_computing:
            found.append(CallPhase(float(gap_ms)))
        part = CallPhase(float(lasts_ms + (0.0 if is_computing else gap_ms)), float(size), *family)
        last = found[-1] if found else None
        if last and last.bytes and (last.pattern, last.groups) == family:
            part = replace(part, duration_ms=part.duration_ms + last.duration_ms, bytes=part.bytes + last.bytes)
            found.pop()
        found.append(part)
    return tuple(found)
