# SPDX-License-Identifier: Apache-2.0
"""Records of a cluster's jobs, as NCCL Inspector would write them of the iterations of a model."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from analysis.reading.data import query
from analysis.records.call import Call
from roundabout.models.packets import Fabric
from roundabout.models.packets.jobs import draw_stretches
from roundabout.models.packets.trial import play_trial
from roundabout.plan import PlannedTrial
from roundabout.spec import TrialSpec
from roundabout.store import Run
from roundabout.testbeds.packets.loads import plan_loads
from roundabout.testbeds.packets.stretched_trial import stretch_computing
from tests.records.record_writers import Inspector

EPOCH_NS = 1_760_000_000 * 10**9
"""When the first iteration begins, in place of the time of the run, so that records of equal runs are equal."""
FABRIC = Fabric()

Spans = Iterable[tuple[int, ...]]
"""Begin, end of computing, and end of communication of each iteration of a worker, ns."""


def write_records(run: Run, folder: Path, trial: int = 0, late: Mapping[str, float] | None = None) -> TrialSpec:
    """Write a folder for each job of a run's trial, with a log for each worker, and return the trial's spec.

    `late` multiplies the computing times of a job's first worker, before which others wait; theirs are the shorter.
    """
    record = run.trials()[trial]
    rows = query(
        run,
        "select job, rank, start_ns, compute_end_ns, comm_end_ns from iterations where trial = $trial "
        "order by job, rank, iteration",
        trial=record["trial"],
    ).to_pylist()
    origin_ns = min(row["start_ns"] for row in rows)
    spans = defaultdict[tuple[str, int], list[tuple[int, ...]]](list)
    for row in rows:
        begin_ns, computed_ns, end_ns = (
            row[name] - origin_ns for name in ("start_ns", "compute_end_ns", "comm_end_ns")
        )
        spans[row["job"], row["rank"]].append((begin_ns, computed_ns, end_ns))
    spec = TrialSpec.model_validate(record["spec"])
    _write_spans(spec, spans, folder, late or {})
    return spec


def play_records(
    spec: TrialSpec, seed: int, folder: Path, slowed: float = 1.0, late: Mapping[str, float] | None = None
) -> None:
    """Play a trial packet by packet, and write its records; `slowed` multiplies the computing times of j1."""
    factors = {name: slowed if name == "j1" else 1.0 for name in spec.jobs}
    stretches = {name: [each * factors[name] for each in draw_stretches(spec, name, seed)] for name in spec.jobs}
    loads = plan_loads(PlannedTrial("planted", "", {}, 1, None, spec, seed, (), 0.0)).loads
    played = play_trial(stretch_computing(spec, stretches, seed), seed, FABRIC, loads=loads)
    fields = ("start_ps", "compute_end_ps", "end_ps")
    spans = {
        (job, rank): [tuple(int(each[field]) // 1000 for field in fields) for each in worker]
        for job, workers in played.iterations.items()
        for rank, worker in enumerate(workers)
    }
    _write_spans(spec, spans, folder, late or {})


def _write_spans(
    spec: TrialSpec, spans: Mapping[tuple[str, int], Spans], folder: Path, late: Mapping[str, float]
) -> None:
    for (job, rank), own in spans.items():
        (size,) = (phase.bytes for phase in spec.jobs[job].profile.phases if phase.bytes)
        factor = late.get(job, 1.0) if rank else 1.0
        calls = [
            Call(
                kind="all-reduce",
                group=job,
                number=number,
                rank=rank,
                ranks=2,
                payload_bytes=size,
                begin_ns=EPOCH_NS + begin_ns + round((computed_ns - begin_ns) / factor),
                end_ns=EPOCH_NS + end_ns,
            )
            for number, (begin_ns, computed_ns, end_ns) in enumerate(own)
        ]
        path = folder / job / f"rank{rank}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Inspector(host=spec.jobs[job].workers[rank]).log(calls))
