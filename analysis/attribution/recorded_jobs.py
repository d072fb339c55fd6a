# SPDX-License-Identifier: Apache-2.0
"""Jobs of a cluster as their records show them: hosts, iterations, and phases with bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.records.call_iterations import MIN_ITERATIONS, CallIterations, CallPhase, find_call_iterations
from analysis.records.collective_groups import find_families
from analysis.records.formats import is_record
from analysis.records.job import join_records
from analysis.records.profile import read_records
from roundabout.core.errors import UsageError
from roundabout.spec import Phase, Profile, Topology
from roundabout.spec.errors import list_choices

Hosts = Mapping[str, tuple[str, ...]]
"""Hosts of each job, by its name."""

HOST_FIELDS = "`host_name` of Kineto, `hostname` of NCCL Inspector"
CLOCK_HINT = "record all jobs at the same time, on hosts whose clocks are synchronized"


@dataclass(frozen=True)
class RecordedJob:
    """A job's iterations as its records show them. `hosts` are those that records name for each rank; None for none.

    `file` is its first record, and `notes` are sentences on what its records lack. `workers` are the hosts of its ranks
    in the topology.
    """

    name: str
    file: Path
    hosts: tuple[str | None, ...]
    iterations: CallIterations
    notes: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()

    @property
    def begin_ns(self) -> int:
        """Return when its first iteration begins, on the clock of its rank 0."""
        return int(self.iterations.edges_ns[0])

    @property
    def end_ns(self) -> int:
        """Return when its last iteration ends, on the clock of its rank 0."""
        return int(self.iterations.edges_ns[-1])

    @property
    def computing_ms(self) -> float:
        """Return the time for which the mean worker computes in an iteration, on average."""
        return float((self.iterations.computing_ms - self.iterations.waited_ms).mean())

    def profile(self, sending_ms: Sequence[float] | None = None) -> Profile:
        """Return the profile of an iteration in which all workers compute as long as the mean worker does.

        `sending_ms` has the time of each sending phase, which is the recorded one if it is None.
        """
        phases = self.iterations.phases
        computed_ms = sum(phase.duration_ms for phase in phases if not phase.bytes)
        share = self.computing_ms / computed_ms if computed_ms else 1.0
        times_ms = iter(sending_ms or [phase.duration_ms for phase in phases if phase.bytes])
        return Profile(
            name="recorded",
            model="not in its records",
            workers=len(self.hosts) if any(phase.groups for phase in phases) else None,
            phases=tuple(
                _phase(f"p{place}", phase, next(times_ms) if phase.bytes else phase.duration_ms * share)
                for place, phase in enumerate(phases)
            ),
        )


def read_recorded_jobs(folder: Path, listed: Hosts) -> dict[str, RecordedJob]:
    """Return the jobs whose records are in a folder, by name, without the hosts of their ranks.

    Each job has a folder of its own in `folder`, called as it is in `listed`: by its name, its number, or both. Records
    that lie in `folder` itself are of one job. Raises UsageError for other folders, and RecordError.
    """
    found = {}
    for name, paths in _record_files(folder, listed).items():
        _, records = read_records(paths)
        job = join_records(records)
        kept, _ = find_families(job)
        lost = (f"{100 * job.lost_share:.1f} % of its calls are lost",) if job.lost_share else ()
        hosts = tuple(each.host for each in job.records)
        found[name] = RecordedJob(name, paths[0], hosts, find_call_iterations(job, kept), (*job.notes, *lost))
    return found


def place_ranks(recorded: RecordedJob, topology: Topology, listed: Hosts) -> tuple[str, ...]:
    """Return the host of each rank: as its record names it, or as the list of jobs has them, in blocks of ranks.

    Raises UsageError if neither has hosts of the topology.
    """
    known = [_host_of(host, topology) for host in recorded.hosts]
    where = f"job {recorded.name}"
    if all(known):
        workers = tuple(host for host in known if host)
    elif recorded.name in listed:
        workers = _spread(recorded, listed[recorded.name], topology)
    elif None in recorded.hosts:
        raise UsageError(
            f"{where}: {recorded.file} names no host ({HOST_FIELDS}), expected one",
            "name the job's hosts, in the order of ranks, with --jobs",
        )
    else:
        unknown = recorded.hosts[known.index(None)]
        raise UsageError(
            f"{where}: found host {unknown} in its records, expected one of {list_choices(sorted(topology.hosts))}",
            f"call the hosts of --topology {topology.name} as records do, or name the job's hosts with --jobs",
        )
    if len({*workers}) == 1:
        raise UsageError(f"{where}: all ranks are on host {workers[0]}, expected several: no network carries its bytes")
    return workers


def _phase(name: str, phase: CallPhase, lasts_ms: float) -> Phase:
    if not phase.bytes:
        return Phase(name=name, compute_ms=lasts_ms, source="recorded")
    return Phase(
        name=name,
        bytes=max(round(phase.bytes), 1),
        alone_ms=lasts_ms,
        pattern=phase.pattern,
        groups=phase.groups,
        source="recorded",
    )


def cut_to_common_time(jobs: Mapping[str, RecordedJob]) -> dict[str, RecordedJob]:
    """Return the jobs with the iterations of which half or more lies in the time of all records.

    Raises UsageError if a job has fewer than MIN_ITERATIONS there.
    """
    if len(jobs) == 1:
        return dict(jobs)
    begin_ns, end_ns = max(each.begin_ns for each in jobs.values()), min(each.end_ns for each in jobs.values())
    found = {}
    for name, each in jobs.items():
        half_ns = round(float(each.iterations.times_ms.mean()) * 1e6 / 2)
        iterations = each.iterations.between(begin_ns - half_ns, end_ns + half_ns)
        if len(iterations.computing_ms) < MIN_ITERATIONS:
            times = ", ".join(f"{other.name} from {other.begin_ns} to {other.end_ns} ns" for other in jobs.values())
            raise UsageError(
                f"job {name}: found {len(iterations.computing_ms)} iterations in the time of all records ({times}), "
                f"expected {MIN_ITERATIONS} at least",
                CLOCK_HINT,
            )
        found[name] = replace(each, iterations=iterations)
    return found


def _record_files(folder: Path, listed: Hosts) -> dict[str, list[Path]]:
    if not folder.is_dir():
        raise UsageError(
            f"found neither a folder nor a file {folder}, expected a folder with a folder of records for each job, or "
            "a file of counters"
        )
    inside = {each.name: _records_in(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    found = {name: files for name, files in inside.items() if files}
    own = _records_in(folder)
    if bool(own) == bool(found):
        what = "records beside folders of them" if own else "no records"
        raise UsageError(
            f"found {what} in {folder}, expected a folder for each job, with its records",
            "record with PyTorch Kineto or NCCL Inspector (docs/how-to/records.md), a file for each rank",
        )
    if own:
        return {next(iter(listed)) if len(listed) == 1 else folder.resolve().name: own}
    return {_listed_name(name, listed): files for name, files in found.items()}


def _records_in(folder: Path) -> list[Path]:
    files = sorted(each for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
    return [each for each in files if is_record(each)]


def _listed_name(name: str, listed: Hosts) -> str:
    """Return the name of a folder's job in the list, where Slurm's jobs are called by name and number."""
    if name in listed:
        return name
    alike = [each for each in listed if each.rpartition("-")[0] == name or each.rpartition("-")[2] == name]
    if listed and len(alike) != 1:
        found = f"folder {name}, which is {'several jobs' if alike else 'no job'} of --jobs"
        raise UsageError(
            f"found {found}, expected one of {list_choices(sorted(listed))}",
            "call each folder as its job is called in --jobs",
        )
    return alike[0] if alike else name


def _host_of(name: str | None, topology: Topology) -> str | None:
    """Return the topology's host of this name, or of its first label; None if there is none."""
    if name is None:
        return None
    return next((each for each in (name, name.partition(".")[0]) if each in topology.hosts), None)


def _spread(recorded: RecordedJob, hosts: Sequence[str], topology: Topology) -> tuple[str, ...]:
    """Return the host of each rank, as many ranks in a row on each host."""
    ranks = len(recorded.hosts)
    if ranks % len(hosts):
        raise UsageError(
            f"job {recorded.name}: found {ranks} ranks for {len(hosts)} hosts of --jobs, expected as many on each host",
            f"use records that name their hosts ({HOST_FIELDS})",
        )
    known = [_host_of(host, topology) for host in hosts]
    if None in known:
        expected = f"one of {list_choices(sorted(topology.hosts))}, the hosts of topology {topology.name}"
        raise UsageError(f"job {recorded.name}: found host {hosts[known.index(None)]} in --jobs, expected {expected}")
    return tuple(host for host in known if host for _ in range(ranks // len(hosts)))
