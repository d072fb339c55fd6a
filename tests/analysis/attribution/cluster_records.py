# SPDX-License-Identifier: Apache-2.0
"""Records of a cluster's jobs, as NCCL Inspector would write them of the iterations of a computed run."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from analysis.reading.data import query
from analysis.records.call import Call
from roundabout.spec import TrialSpec
from roundabout.store import Run
from tests.records.record_writers import Inspector

EPOCH_NS = 1_760_000_000 * 10**9
"""When the first iteration begins, in place of the time of the run, so that records of equal runs are equal."""


def write_records(run: Run, folder: Path, trial: int = 0, late: Mapping[str, float] | None = None) -> TrialSpec:
    """Write a folder for each job of a trial, with a log for each worker, and return the trial's spec.

    `late` multiplies the computing times of a job's first worker, before which others wait; theirs are the shorter.
    """
    record = run.trials()[trial]
    spec = TrialSpec.model_validate(record["spec"])
    rows = query(
        run,
        "select job, rank, start_ns, compute_end_ns, comm_end_ns, compute_ms from iterations where trial = $trial "
        "order by job, rank, iteration",
        trial=record["trial"],
    ).to_pylist()
    origin_ns = min(row["start_ns"] for row in rows) - EPOCH_NS
    calls: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for row in rows:
        job, rank = row["job"], row["rank"]
        (size,) = (phase.bytes for phase in spec.jobs[job].profile.phases if phase.bytes)
        factor = (late or {}).get(job, 1.0) if rank else 1.0
        early_ns = round(row["compute_ms"] * 1e6 * (1 - 1 / factor))
        begin_ns, end_ns = (row[name] - origin_ns for name in ("compute_end_ns", "comm_end_ns"))
        number = len(calls[job, rank])
        calls[job, rank].append(Call("all-reduce", job, number, rank, 2, size, begin_ns - early_ns, end_ns))
    for (job, rank), own in calls.items():
        path = folder / job / f"rank{rank}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Inspector(host=spec.jobs[job].workers[rank]).log(own))
    return spec
