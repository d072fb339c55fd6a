# SPDX-License-Identifier: Apache-2.0
"""Steady states of jobs: iterations that repeat with a period, so that the remaining ones need not be played.

Jobs that share a link, a host or a switch's buffer form a group. A group is in a steady state if in its last periods
the time of each worker's iteration, the starts of its workers beside each other, and the share of marked packets stay
the same, and no packet was sent again. A drift is extrapolated to the trial's end, with the error of its slope. So a
slow drift ends no trial early: it makes the bound large.

docs/explanation/packet-level-model.md explains the bound, and compares it with trials that were played to their end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roundabout.models.packets.structures import PS_PER_MS, RECORD
from roundabout.spec import TrialSpec
from roundabout.spec.topology import Hop

MIN_PERIODS = 3
"""A straight line through fewer periods has no error."""

MAX_PERIOD = 4
"""Iterations of the longest period that is looked for."""

CONFIDENCE = 0.99
"""Of the prediction intervals, which bound the error."""

RESOLUTION = 1e-4
"""Smallest bound, as a share of the iteration time: it covers single late packets, which a short window may lack."""

MAX_MARK_CHANGE = 0.05
"""Largest change between periods of the share of a job's packets that are marked. It is a guess."""

MIN_USE = 1e-5
"""Share of a link's rate below which a job does not delay others: a tenth of RESOLUTION."""

BYTES_PER_MS_OF_GBPS = 125_000

MAX_LIKENESS = 0.9
"""Largest correlation of a value with the one before: short series have no better estimate."""

TINY = 1e-30
"""A variance, so that constant series can be divided by theirs."""

LEARNING = "mltcp"
"""Transports whose names begin with this move jobs apart, from a balance that is not stable."""

Times = npt.NDArray[np.float64]
Records = npt.NDArray[np.void]


class Counts(NamedTuple):
    """Packets of a job's queue pairs so far."""

    packets: int
    resent: int
    marked: int


class Progress(NamedTuple):
    """A job's completed iterations, as an array (workers, iterations) of RECORD, and its counts at the end of each."""

    records: Records
    counts: Sequence[Counts]


@dataclass(frozen=True)
class Skipped:
    """The iterations of a job that were not played but repeat earlier ones.

    Iterations from `played` on repeat the last `window` played ones, in which each `period` of iterations is alike.
    The job's mean and median iteration times are off by at most `bound_ms`.
    """

    played: int
    skipped: int
    period: int
    window: int
    bound_ms: float


def refusal(spec: TrialSpec) -> str | None:
    """Return the reason for which no iteration of a trial may be skipped, or None if there is none."""
    return next(_refusals(spec), None)


def _refusals(spec: TrialSpec) -> Iterator[str]:
    if spec.cluster:
        yield "cluster: jobs arrive and depart"
    if any(traffic.load_gbps > 0 for traffic in spec.cross_traffic.values()):
        yield "cross_traffic: it does not repeat with the jobs"
    for name, job in spec.jobs.items():
        if job.jitter:
            yield f"jobs.{name}.jitter: found {job.jitter:g}, expected 0: computing times are drawn at random"
        if job.departs_ms is not None:
            yield f"jobs.{name}.departs_ms: the last iterations of other jobs differ"
        if job.held_timetable:
            yield f"jobs.{name}: its timetable delays some iterations and not others"
    for group in find_groups(spec):
        numbers = sorted({spec.iterations_of(name) for name in group})
        if len(numbers) > 1:
            found = ", ".join(map(str, numbers))
            yield f"iterations: found {found} for jobs {', '.join(group)}, which meet; expected one number"


def find_groups(spec: TrialSpec) -> list[tuple[str, ...]]:
    """Return the groups of jobs that share a link, a host or a switch's buffer, also by way of other jobs.

    Links that a job hardly uses (MIN_USE) count for none.
    """
    groups: list[tuple[set[str], tuple[str, ...]]] = []
    for name, job in spec.jobs.items():
        hops = _used_hops(spec, name)
        used = {f"link {hop.link.name}" for hop in hops} | {f"node {host}" for host in job.hosts}
        if spec.topology.buffer:
            used |= {f"node {hop.receiver}" for hop in hops}
        meeting = [each for each in groups if each[0] & used]
        groups = [each for each in groups if not each[0] & used]
        names = (*(own for _, each in meeting for own in each), name)
        groups.append((used.union(*(each for each, _ in meeting)), names))
    return [names for _, names in groups]


def _used_hops(spec: TrialSpec, name: str) -> list[Hop]:
    profile, sizes = spec.jobs[name].profile, Counter[Hop]()
    for phase in profile.phases:
        sizes.update(spec.bytes_by_hop(name, phase))
    least_ms = MIN_USE * profile.alone_ms
    return [hop for hop, size in sizes.items() if size > least_ms * hop.link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS]


def find_steady_state(
    spec: TrialSpec, group: Sequence[str], progress: Mapping[str, Progress]
) -> dict[str, Skipped] | None:
    """Return what can be skipped of each job of a group within the trial's `skip_within`, or None if it is not steady.

    Of all periods and windows, the shortest period and the longest window are chosen.
    """
    assert spec.skip_within is not None
    played = min(progress[name].records.shape[1] for name in group)
    more = spec.iterations_of(group[0]) - played
    if more < 1:
        return {name: Skipped(played, 0, 1, 0, 0.0) for name in group}
    for period in range(1, MAX_PERIOD + 1):
        for first in (1, played // 2):
            window = (played - first) // period * period
            if window >= MIN_PERIODS * period:
                bounds_ms = _bounds_ms(spec, group, progress, slice(played - window, played), period, more)
                means_ms = {name: _mean_ms(progress[name], played, window) for name in group}
                if all(bounds_ms[name] <= spec.skip_within * means_ms[name] for name in group):
                    return {name: Skipped(played, more, period, window, bounds_ms[name]) for name in group}
    return None


def _mean_ms(progress: Progress, played: int, window: int) -> float:
    return float(_durations_ms(progress.records[:, played - window : played]).mean())


def _durations_ms(records: Records) -> Times:
    lengths: Times = (records["end_ps"] - records["start_ps"]) / PS_PER_MS
    return lengths


def _bounds_ms(  # noqa: PLR0913, PLR0917 - the window, and what it stands for
    spec: TrialSpec, group: Sequence[str], progress: Mapping[str, Progress], window: slice, period: int, more: int
) -> dict[str, float]:
    """Return by job how far its iteration times may be off, in ms; infinity if the group's state does not repeat."""
    never = dict.fromkeys(group, np.inf)
    if not all(_repeats_counts(progress[name].counts, window, period) for name in group):
        return never
    periods = -(-more // period)
    records = {name: progress[name].records[:, window] for name in group}
    moves_ms = _offset_moves_ms(records, period, periods)
    is_apart = len(group) > 1 and 4 * moves_ms.farthest <= _least_gap_ms(list(records.values()))
    learns = len(group) > 1 and any(spec.jobs[name].transport.name.startswith(LEARNING) for name in group)
    if learns and not is_apart:
        return never
    found = {}
    for name, own in records.items():
        lengths_ms = _durations_ms(own)
        bound_ms = float(mean_bounds(_by_place(lengths_ms, period), periods).max())
        if not is_apart:
            bound_ms += moves_ms.beyond + _last_ms(spec, group, progress, name, window)
        found[name] = max(bound_ms, RESOLUTION * float(lengths_ms.mean()))
    return found


def _by_place(values: Times, period: int) -> Times:
    """Return arrays (rows, values) as (rows, places in the period, periods)."""
    return values.reshape(len(values), -1, period).swapaxes(1, 2)


def mean_bounds(series: Times, more: int) -> Times:
    """Return how far the mean of `more` further values may be from the mean of each series, along the last axis.

    A straight line through the series (least squares) is extrapolated: the bound is its change, and the prediction
    interval of a mean about it (Draper and Smith, Applied Regression Analysis, 1998, section 3.1). Where a value
    resembles the one before, fewer count, as in an autoregression of order one.
    """
    count = series.shape[-1]
    at = np.arange(count) - (count - 1) / 2
    squares = float(at @ at)
    slopes = series @ at / squares
    rest = series - series.mean(axis=-1, keepdims=True) - slopes[..., np.newaxis] * at
    variances = (rest**2).sum(axis=-1) / (count - 2)
    likeness = np.clip((rest[..., 1:] * rest[..., :-1]).mean(axis=-1) / np.maximum(variances, TINY), 0, MAX_LIKENESS)
    deviations = np.sqrt(variances * (1 + likeness) / (1 - likeness))
    ahead = (count + more) / 2
    widths = _student(count - 2) * deviations * np.sqrt(1 / more + 1 / count + ahead**2 / squares)
    bounds: Times = np.abs(slopes) * ahead + widths
    return bounds


def _student(freedom: int) -> float:
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and few trials need it

    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))


class Moves(NamedTuple):
    """How far starts of workers may move beside each other until the trial's end, on average, in ms.

    `farthest` is that of the worker that moves most. `beyond` is what goes beyond the offsets of the window, added up
    over jobs.
    """

    farthest: float
    beyond: float


def _offset_moves_ms(records: Mapping[str, Records], period: int, periods: int) -> Moves:
    """Return the moves of workers beside the first job's first worker."""
    first = next(iter(records.values()))["start_ps"][0]
    farthest, beyond = 0.0, 0.0
    for each in records.values():
        offsets_ms = _by_place((each["start_ps"] - first) / PS_PER_MS, period)
        moves_ms = mean_bounds(offsets_ms, periods)
        known_ms = np.ptp(offsets_ms, axis=-1) / 2
        farthest = max(farthest, float(moves_ms.max()))
        beyond += max(float((moves_ms - known_ms).max()), 0.0)
    return Moves(farthest, beyond)


def _least_gap_ms(records: Sequence[Records]) -> float:
    """Return the shortest time between the sending of two jobs; below 0 if they send at once."""
    spans = sorted(
        (float(begin), float(end), job)
        for job, each in enumerate(records)
        for begin, end in zip(each["compute_end_ps"].min(axis=0), each["end_ps"].max(axis=0), strict=True)
    )
    gaps = (after[0] - before[1] for before, after in pairwise(spans) if before[2] != after[2])
    return min(gaps, default=np.inf) / PS_PER_MS


def _last_ms(
    spec: TrialSpec, group: Sequence[str], progress: Mapping[str, Progress], name: str, window: slice
) -> float:
    """Return how much shorter a job's mean iteration may be because other jobs of its group end before it."""
    ends = np.array([progress[each].records["end_ps"][:, window.stop - 1].max() for each in group])
    before_ms = (len(group) - 1) * float(ends.max() - ends.min()) / PS_PER_MS
    saved_ms = _mean_ms(progress[name], window.stop, window.stop - window.start) - spec.jobs[name].profile.alone_ms
    return max(min(before_ms, saved_ms), 0.0) / spec.iterations_of(name)


def _repeats_counts(counts: Sequence[Counts], window: slice, period: int) -> bool:
    """Return True if no packet was sent again in the window and each period marked the same share of packets."""
    edges = counts[window.start - 1 : window.stop]
    if edges[0].resent != edges[-1].resent:
        return False
    shares = [
        (after.marked - before.marked) / max(after.packets - before.packets, 1) for before, after in pairwise(edges)
    ]
    return bool(np.ptp(np.reshape(shares, (-1, period)), axis=0).max() <= MAX_MARK_CHANGE)


def repeat_iterations(records: Records, skipped: Skipped) -> Records:
    """Return a job's played iterations and after them the repeated ones, as an array (workers, iterations) of RECORD.

    A worker begins each repeated iteration at the end of the one before.
    """
    played = records[:, : skipped.played]
    places = repeated_places(skipped)
    found = np.zeros((len(records), skipped.played + skipped.skipped), RECORD)
    found[:, : skipped.played] = played
    again = played[:, places]
    lengths = again["end_ps"] - again["start_ps"]
    ends = played["end_ps"][:, -1:] + np.cumsum(lengths, axis=1)
    starts = ends - lengths
    found["start_ps"][:, skipped.played :] = starts
    found["compute_end_ps"][:, skipped.played :] = starts + again["compute_end_ps"] - again["start_ps"]
    found["end_ps"][:, skipped.played :] = ends
    return found


def repeated_places(skipped: Skipped) -> list[int]:
    """Return for each skipped iteration the one, from 0, that it repeats."""
    first = skipped.played - skipped.window
    return [first + number % skipped.window for number in range(skipped.skipped)]
