# SPDX-License-Identifier: Apache-2.0
"""The measured profile of a job that ran alone, and its difference from the played profile."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow.compute as pc

from analysis.reading.data import iterations, query
from analysis.reading.disturbance import describe_effect
from analysis.statistics.phase_folding import WorkerCounter
from analysis.statistics.phases import SAME_RATE, Estimate, FoundPhase, FoundProfile
from roundabout.spec import Phase, Profile, ResolvedJob, TrialSpec
from roundabout.spec.frames import HEADER_BYTES
from roundabout.spec.patterns import Pattern
from roundabout.store import Run, StoreError, Units
from roundabout.store.trial_states import DISTURBANCE, state_of_record


@dataclass(frozen=True)
class LoneJob:
    """A job that ran alone in a trial. `disturbance` is the estimated effect on a disturbed trial, as a share."""

    run: Run
    trial: str
    name: str
    spec: TrialSpec
    disturbance: float | None = None

    @property
    def job(self) -> ResolvedJob:
        """Return the job as it was played."""
        return self.spec.jobs[self.name]

    def workers(self) -> list[WorkerCounter]:
        """Return the counters of the job's hosts, without packet headers.

        Stored bytes were multiplied by the testbed's scale, packets were not, so headers are scaled here. Pure
        acknowledgements consist of headers and add nothing. Raises StoreError if a counter fell.
        """
        return [self._sent(host) for host in self.job.workers]

    def timed_ms(self) -> float:
        """Return the median iteration time that workers measured, ms; it is a little longer than the profile's."""
        rows = iterations(self.run)
        return float(np.median(rows.filter(pc.field("trial") == self.trial)["iteration_ms"].to_numpy()))

    def _sent(self, host: str) -> WorkerCounter:
        rows = query(
            self.run,
            """
            select controller_ns, tx_bytes, tx_packets from counters
            where trial = $trial and host = $host order by controller_ns
            """,
            trial=self.trial,
            host=host,
        )
        at_ns, sent, packets = (column.to_numpy() for column in rows.columns)
        if (np.diff(sent) < 0).any():
            raise StoreError(f"{self.run.path}: tx_bytes of {host} fell during trial {self.trial}, expected growth")
        headers = np.rint(
            HEADER_BYTES * Units.from_manifest(self.run.manifest["testbed"]).bytes_scale * packets
        ).astype(np.int64)
        # A packet with less of a header (ARP) lets the difference fall by some bytes.
        return WorkerCounter(at_ns, np.maximum.accumulate(sent - headers))


def find_lone_job(
    run: Run,
    job: str,
    among: Collection[str] | None = None,
    variant: str | None = None,
    *,
    allow_disturbed: bool = False,
) -> LoneJob:
    """Return the last valid trial of `run` in which `job` ran alone.

    Only trials with a key in `among` and of the variant count, where these are given. If none is valid and
    `allow_disturbed` is set, return the least disturbed one; the caller must show the mark.

    Raises:
        StoreError: there is none.
    """
    trials = [
        trial
        for trial in run.trials()
        if (trial["job"] == job or list(trial["spec"]["jobs"]) == [job])
        and (among is None or trial["trial"] in among)
        and variant in (None, trial["variant"])
    ]
    valid = [trial for trial in trials if trial["valid"]]
    disturbed = [trial for trial in trials if allow_disturbed and state_of_record(trial) == "disturbed"]
    if valid:
        chosen = valid[-1]
    elif disturbed:
        chosen = min(disturbed, key=lambda trial: trial.get(DISTURBANCE) or 0.0)
    else:
        why = f"; {trials[-1]['reason']}" if trials else ""
        raise StoreError(f"{run.path}: found no valid trial of {job} alone{why}, expected one", "run it again")
    effect = None if valid else float(chosen.get(DISTURBANCE) or 0.0)
    return LoneJob(run, chosen["trial"], job, TrialSpec.model_validate(chosen["spec"]), effect)


def profile_of(measured: LoneJob, found: FoundProfile, name: str) -> Profile:
    """Return what was found in counters as a profile, whose sources give the run and the intervals.

    Raises StoreError for a job whose hosts do not all send alike, because counters do not show the receivers.
    """
    pattern = measured.job.common_pattern
    if pattern is None:
        what = f"job {measured.name}, whose hosts send differently"
        expected = "one whose workers all send alike, each on a host of its own"
        raise StoreError(f"{measured.run.path}: found {what}, expected {expected}")
    played, testbed = measured.job.profile, measured.run.manifest["testbed"]
    on = f"{testbed['kind']} at 1:{testbed['scale']:g}" if testbed["emulated"] else testbed["kind"]
    source = (
        f"measured, run {measured.run.id}: job {measured.name} alone, {found.iterations} iterations on a {on}, each of "
        f"{format_estimate(found.period_ms, 1)} ms; payload only; 95 % intervals in brackets"
    )
    if measured.disturbance is not None:
        source += f"; {describe_effect(measured.disturbance)} by a lack of CPU time"
    return Profile(
        name=name, model=played.model, batch=played.batch, source=source, phases=tuple(_phases(found, pattern))
    )


def _phases(found: FoundProfile, pattern: Pattern) -> Iterator[Phase]:
    for phase, name in zip(found.phases, phase_names([phase.sends for phase in found.phases]), strict=True):
        lasts_ms, source = round(phase.duration_ms.value, 3), f"measured: {describe_phase(phase)}"
        if phase.sends:
            size = round(phase.bytes.value)
            yield Phase(name=name, bytes=size, alone_ms=lasts_ms, pattern=pattern, source=source)
        else:
            yield Phase(name=name, compute_ms=lasts_ms, source=source)


def phase_names(sends: Sequence[bool]) -> list[str]:
    """Return a name for each phase, `send` or `compute`, with a number if there are several of the kind."""
    kinds = ["send" if each else "compute" for each in sends]
    numbers = {kind: count(1) for kind in kinds}
    return [f"{kind}-{next(numbers[kind])}" if kinds.count(kind) > 1 else kind for kind in kinds]


def describe_phase(phase: FoundPhase) -> str:
    """Return a found phase's duration, bytes and rate as text, for a profile's sources."""
    sent = (
        f", {format_estimate(phase.bytes, 1, 1e6)} MB at {format_estimate(phase.gbps, 2)} Gbit/s" if phase.sends else ""
    )
    return f"{format_estimate(phase.duration_ms, 1)} ms{sent}"


def format_estimate(estimate: Estimate, digits: int, unit: float = 1.0) -> str:
    """Return a figure with its interval as text, divided by `unit`, for a profile's sources."""
    value, low, high = (f"{each / unit:.{digits}f}" for each in (estimate.value, estimate.low, estimate.high))
    return f"{value} ({low} to {high})"


@dataclass(frozen=True)
class ConstantRatePart:
    """A part of a played iteration with a constant rate, which counters can distinguish from the next part."""

    begin_ms: float
    duration_ms: float
    bytes: float

    @property
    def gbps(self) -> float:
        """Return the demand, Gbit/s; 0 while computing."""
        return self.bytes * 8 / self.duration_ms / 1e6


def iteration_parts(profile: Profile, found: FoundProfile) -> list[ConstantRatePart] | None:
    """Return a profile's iteration as parts of constant rate; None if they do not match the found phases.

    The parts are rotated to match the found phases best, because counters do not show which phase comes first.
    """
    parts: list[tuple[float, float]] = []
    for phase in profile.phases:
        if phase.duration_ms > 0:
            _append(parts, (phase.duration_ms, float(phase.bytes or 0)))
    if len(parts) > 1 and _have_equal_rate(parts[-1], parts[0]):
        _append(parts, parts.pop(0))
    turned = [parts[first:] + parts[:first] for first in range(len(parts))]
    kinds = [phase.sends for phase in found.phases]
    like = [_merge_parts(each) for each in turned if [sent > 0 for _, sent in each] == kinds]
    return min(like, key=lambda each: _worst_edge_ms(found, each), default=None)


def _merge_parts(parts: list[tuple[float, float]]) -> list[ConstantRatePart]:
    begins_ms = np.cumsum([0.0, *(duration_ms for duration_ms, _ in parts)]).tolist()
    return [ConstantRatePart(begin_ms, *part) for begin_ms, part in zip(begins_ms, parts, strict=False)]


def _worst_edge_ms(found: FoundProfile, parts: list[ConstantRatePart]) -> float:
    return max(
        abs(phase.begin_ms.value + rest * phase.duration_ms.value - part.begin_ms - rest * part.duration_ms)
        for phase, part in zip(found.phases, parts, strict=True)
        for rest in (0, 1)
    )


def _append(parts: list[tuple[float, float]], part: tuple[float, float]) -> None:
    if parts and _have_equal_rate(parts[-1], part):
        part = (parts[-1][0] + part[0], parts.pop()[1] + part[1])
    parts.append(part)


def _have_equal_rate(one: tuple[float, float], other: tuple[float, float]) -> bool:
    rates = one[1] / one[0], other[1] / other[0]
    return abs(rates[1] - rates[0]) <= SAME_RATE * rates[0]


@dataclass(frozen=True)
class Difference:
    """The largest differences between a found and the played profile.

    `period_share` is the difference of the periods, and `edge_share` that of phases' begins or ends, as shares of the
    played period. `demand_share` is the difference of demands as a share of the played demand. Both latter shares are
    None if other phases were found.
    """

    period_share: float
    edge_share: float | None
    demand_share: float | None


def compare_profiles(found: FoundProfile, played: Profile) -> Difference:
    """Return the largest differences between a found and the played profile."""
    period_share = abs(found.period_ms.value / played.alone_ms - 1)
    parts = iteration_parts(played, found)
    if parts is None:
        return Difference(period_share, None, None)
    demands = [
        abs(phase.gbps.value / part.gbps - 1) for phase, part in zip(found.phases, parts, strict=True) if phase.sends
    ]
    return Difference(period_share, _worst_edge_ms(found, parts) / played.alone_ms, max(demands))
