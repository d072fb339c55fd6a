# SPDX-License-Identifier: Apache-2.0
"""Jobs of a cluster as byte counters of their hosts show them: iterations, and phases with bytes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analysis.advice.counters import HostCounter
from analysis.advice.errors import AdviceError
from analysis.advice.senders import shared_hosts
from analysis.advice.sources import read
from analysis.attribution.recorded_jobs import Hosts, RecordedJob
from analysis.records.call_iterations import CallIterations, CallPhase
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.iteration_period import NoPeriodError
from analysis.statistics.phase_folding import FoldedIterations, WorkerCounter, fold_iterations
from analysis.statistics.phases import find_phases_in
from roundabout.core.errors import UsageError
from roundabout.spec.errors import list_choices

NOTE = "counters show neither the slowest worker nor the pattern of sending, which is taken to be a ring"


def read_counted_jobs(path: Path, listed: Hosts, capacity_gbps: float) -> dict[str, RecordedJob]:
    """Return the jobs of a list by the counters of their hosts, in a file as `roundabout advise` reads it.

    `capacity_gbps` is the largest payload rate of a cable, faster than which no counter rises. Raises UsageError
    without a list, for hosts without counters or of several jobs, and for a job without a period; AdviceError and
    SpecError for a file that cannot be read.
    """
    if not listed:
        raise UsageError(f"{path}: found no --jobs, expected it", "counters do not show the job of bytes")
    for job, reason in shared_hosts(listed).items():
        raise UsageError(f"job {job}: {reason}", "record it with PyTorch Kineto or NCCL Inspector")
    counters = read(str(path), {host for hosts in listed.values() for host in hosts})
    found = {}
    for job, hosts in listed.items():
        if missing := [host for host in hosts if host not in counters.hosts]:
            expected = f"one of {list_choices(sorted(counters.hosts))}"
            raise UsageError(f"job {job}: found no counter of host {missing[0]} in {path}, expected {expected}")
        try:
            iterations = _iterations([_sent(counters.hosts[host], host, capacity_gbps) for host in hosts])
        except (AdviceError, NoPeriodError) as error:
            hint = "counters need ten like iterations and thirty samples in each (docs/how-to/profiling.md)"
            raise UsageError(f"job {job}: {error.message}", hint) from error
        found[job] = RecordedJob(job, path, hosts, iterations, (*counters.notes, NOTE))
    return found


def _sent(counter: HostCounter, host: str, capacity_gbps: float) -> WorkerCounter:
    try:
        return counter.to_sent_bytes(capacity_gbps)
    except AdviceError as error:
        raise AdviceError(f"host {host}: {error.message}") from error


def _iterations(workers: Sequence[WorkerCounter]) -> CallIterations:
    """Return the iterations of a job from its workers' counters. Raises NoPeriodError."""
    folded = fold_iterations(workers)
    phases = tuple(
        CallPhase(phase.duration_ms.value, phase.bytes.value if phase.sends else 0.0)
        for phase in find_phases_in(folded).phases
    )
    quiet_ms = sum(phase.duration_ms for phase in phases if not phase.bytes)
    edges_ns = _edges_ns(folded, workers[0]) - phases[0].duration_ms * 1e6 / 2
    count = len(edges_ns) - 1
    return CallIterations(np.rint(edges_ns).astype(np.int64), np.full(count, quiet_ms), np.zeros(count), phases)


def _edges_ns(folded: FoldedIterations, worker: WorkerCounter) -> Floats:
    """Return the middles of the longest quiet times, ns, by which folding cuts iterations.

    Where it leaves out unlike ones, the bytes between two cuts say how many iterations these are.
    """
    sent = np.interp(folded.begins_ns, worker.at_ns, worker.payload_bytes)
    numbers = np.concatenate([[0], np.cumsum(np.rint(np.diff(sent) / folded.bytes))])
    edges_ns: Floats = np.interp(np.arange(numbers[-1] + 1), numbers, folded.begins_ns.astype(np.float64))
    return edges_ns
