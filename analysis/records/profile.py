# SPDX-License-Identifier: Apache-2.0
"""A job's profile from its profiler records, with sentences on the records' gaps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.reading.measured_profile import describe_phase, format_estimate, phase_names
from analysis.records.call import Record, RecordError
from analysis.records.collective_groups import CollectiveFamily, find_families, groups_of, sent_bytes
from analysis.records.formats import Format, format_of
from analysis.records.job import MAX_LOST, Job, join_records
from analysis.records.record_timeline import PhasePart, RecordTimeline, find_iterations
from analysis.statistics.phases import FoundPhase
from roundabout.spec import Phase, Profile
from roundabout.store import Units

PATTERN_CAVEATS = {
    "ring": "in rings",
    "tree": "along trees",
    "all-to-all": "among all",
    "pipeline": "along chains",
}

MAX_OUTSIDE = 0.001
"""Share of an iteration's bytes outside all sending phases above which a caveat is added."""


@dataclass(frozen=True)
class RecordedProfile:
    """A profile made from records, with the joined job, its iterations, and sentences on the records' gaps."""

    format: str
    job: Job
    timeline: RecordTimeline
    profile: Profile
    steps_ms: float | None
    caveats: tuple[str, ...]


def read_records(paths: Sequence[Path]) -> tuple[str, list[Record]]:
    """Return the name of the files' format, and their records.

    Raises RecordError for files of several formats, and files that cannot be read.
    """
    formats: dict[str, Path] = {}
    records = []
    for path in paths:
        found: Format = format_of(path)
        formats.setdefault(found.NAME, path)
        if len(formats) > 1:
            (name, first), other = next(iter(formats.items())), found.NAME
            raise RecordError(f"{path}: found {other}, expected {name} as {first} is: one job is recorded in one way")
        records.append(found.read(path))
    return next(iter(formats)), records


def make_profile(paths: Sequence[Path], name: str, units: Units | None = None) -> RecordedProfile:
    """Return the profile of a job with one record file for each process.

    `units` are the units of the testbed on which the job ran, if its rates were scaled; the profile is in the papers'
    units. Raises RecordError for files that cannot be read, or lack data for a profile.
    """
    return profile_of_records(*read_records(paths), name, units)


def profile_of_records(what: str, records: Sequence[Record], name: str, units: Units | None = None) -> RecordedProfile:
    """Return the profile of a job with these records, whose format is called `what`. Raises RecordError."""
    job = join_records(records if units is None else [_in_papers_units(each, units) for each in records])
    kept, small = find_families(job)
    found = find_iterations(job, kept)
    steps_ms = _steps_ms(job)
    profile = Profile(
        name=name,
        model="not in its records",
        workers=len(records) if any(groups_of(each, job) for each in kept) else None,
        source=_source(what, job, found),
        phases=tuple(_phases(found, job)),
    )
    return RecordedProfile(what, job, found, profile, steps_ms, tuple(_caveats(job, found, small, steps_ms)))


def _in_papers_units(record: Record, units: Units) -> Record:
    """Return the record of a worker of a testbed, which is a host of its own even if it shares a machine's name."""

    def instant(at_ns: int) -> int:
        return round(at_ns / units.dilation) if units.dilation != 1 else at_ns

    calls = tuple(
        replace(
            call,
            payload_bytes=round(call.payload_bytes * units.bytes_scale),
            begin_ns=instant(call.begin_ns),
            end_ns=instant(call.end_ns),
            sent_bytes=None if call.sent_bytes is None else round(call.sent_bytes * units.bytes_scale),
        )
        for call in record.calls
    )
    steps_ns = tuple((instant(begin_ns), instant(end_ns)) for begin_ns, end_ns in record.steps_ns)
    return replace(record, host=record.path.name, calls=calls, steps_ns=steps_ns)


def _steps_ms(job: Job) -> float | None:
    """Return the median step that the records name, from begin to begin, without the first."""
    begins_ns = [begin_ns for begin_ns, _ in job.steps_ns[1:]]
    return float(np.median(np.diff(begins_ns))) / 1e6 if len(begins_ns) > 1 else None


def _source(what: str, job: Job, found: RecordTimeline) -> str:
    period = format_estimate(found.found.period_ms, 1)
    return (
        f"recorded: {what}, {len(job.records)} ranks, {found.found.iterations} iterations, each of "
        f"{period} ms; bytes as patterns define them; contention, if there was any, is in its times; 95 % intervals in "
        "brackets"
    )


def _phases(found: RecordTimeline, job: Job) -> Iterator[Phase]:
    parts_of = zip(found.found.phases, found.parts, strict=True)
    each_part = [(phase, part, len(parts)) for phase, parts in parts_of for part in (parts if phase.sends else (None,))]
    for (phase, part, parts), name in zip(
        each_part, phase_names([phase.sends for phase, *_ in each_part]), strict=True
    ):
        if part is None:  # it computes
            lasts_ms, source = round(phase.duration_ms.value, 3), f"recorded: {describe_phase(phase)}"
            yield Phase(name=name, compute_ms=lasts_ms, source=source)
        else:
            yield _phase(name, phase, part, job, parts)


def _phase(name: str, phase: FoundPhase, part: PhasePart, job: Job, parts: int) -> Phase:
    together = f"; one of {parts} parts of these, one after another here: their shares are by bytes and by time"
    sent = f"{' and '.join(part.family.kinds)} {PATTERN_CAVEATS[part.family.pattern]}"
    source = f"recorded: {describe_phase(phase)}{together if parts > 1 else ''}; {sent}"
    return Phase(
        name=name,
        bytes=max(round(phase.bytes.value * part.bytes_share), 1),
        alone_ms=round(phase.duration_ms.value * part.time_share, 3),
        pattern=part.family.pattern,
        groups=groups_of(part.family, job),
        source=source,
    )


def _caveats(
    job: Job, found: RecordTimeline, small: Sequence[CollectiveFamily], steps_ms: float | None
) -> Iterator[str]:
    """Yield a sentence on each thing that the records lack, the general ones first."""
    yield (
        "Whether the job had the network to itself is not recorded: if it had not, contention is in its times, and its "
        "demand is too low."
    )
    yield (
        "What is between calls counts as computing, and what is computed beside them is not seen: how far they overlap "
        "is not recorded."
    )
    if job.lost_share:
        yield (
            f"{100 * job.lost_share:.1f} % of the calls are lost, not of all ranks, or end more than 10 s apart: "
            "about so many bytes are missing "
            f"(more than {100 * MAX_LOST:.0f} %, a guess, would be refused)."
        )
    if found.found.outside_share > MAX_OUTSIDE:
        yield f"{100 * found.found.outside_share:.1f} % of the bytes go too slowly to be a phase, and are left out."
    if small:
        kinds = ", ".join(sorted({kind for family in small for kind in family.kinds}))
        left = sum(family.bytes for family in small)
        whole = sum(sent_bytes(each) for each in job.exchanges)
        yield f"Small exchanges are left out ({kinds}): {100 * max(left / whole, 1e-4):.2f} % of the bytes, or less."
    if any(kind in ("broadcast", "reduce") for family in families_in_order(found) for kind in family.kinds):
        yield "Broadcasts and reduces are taken to go along NCCL's ring; along a tree, ranks send unlike amounts."
    if any(family.pattern == "tree" for family in families_in_order(found)):
        yield "Trees are taken to be of all ranks of a group; NCCL's are of servers, each with a chain of its ranks."
    if steps_ms is not None and abs(steps_ms / found.found.period_ms.value - 1) > 0.01:
        period_ms = found.found.period_ms.value
        yield (
            f"Steps that the record names last {steps_ms:.1f} ms by the median, iterations found {period_ms:.1f} ms: "
            "steps may be several iterations, or a part of one."
        )
    said = (note for each in job.records for note in (*each.losses, *each.notes))
    yield from dict.fromkeys(map(_sentence, (*job.notes, *said)))


def families_in_order(found: RecordTimeline) -> list[CollectiveFamily]:
    """Return the families of collectives in the order of the phases in which they first occur."""
    return list(dict.fromkeys(part.family for parts in found.parts for part in parts))


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:].rstrip(".") + "."
