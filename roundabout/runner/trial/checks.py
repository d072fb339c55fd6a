# SPDX-License-Identifier: Apache-2.0
"""What makes a trial invalid: a spoilt measurement must never look like a result."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roundabout.plan import PlannedTrial
from roundabout.store.rates import increments

BUSY_MAX = 0.95  # of all cores over a window of 1 s: beyond it, what was measured was the CPU
STEAL_MAX = 0.03  # other virtual machines took the CPU away
PORT = ("link", "host", "towards")
# In one of ten iterations trainers woke up so late that it is not what the profile says: by this share of it, and more
# than this at all.
LATE_P90_MAX, LATE_P90_MAX_MS = 0.02, 2.0


def measures(tables: Mapping[str, pa.Table], start_ns: int | None, end_ns: int | None) -> dict[str, float | None]:
    """The trial's busiest CPU window, the one with most steal, and the trainers' lateness; None where unknown."""
    cpu = tables["cpu"]
    if start_ns is not None and end_ns is not None and cpu.num_rows:
        begin = pc.subtract(cpu["controller_ns"], pc.cast(pc.multiply(cpu["window_ms"], 1e6), pa.int64(), safe=False))
        cpu = cpu.filter(pc.and_(pc.greater_equal(begin, start_ns), pc.less_equal(cpu["controller_ns"], end_ns)))
    # Single hiccups, which virtual machines have, do not move medians; how late a tenth of the iterations were does.
    late_ms = (
        tables["iterations"].group_by(["job", "iteration"]).aggregate([("late_ms", "max")])["late_ms_max"].to_numpy()
    )
    return {
        "busy_max": pc.max(cpu["busy_share"]).as_py(),
        "steal_max": pc.max(cpu["steal_share"]).as_py(),
        "late_p90_ms": float(np.percentile(late_ms, 90)) if len(late_ms) else None,
    }


def faults(trial: PlannedTrial, tables: Mapping[str, pa.Table], measured: Mapping[str, float | None]) -> list[str]:
    """Why the trial may not be used; empty for a good one."""
    found = [
        *_missing_iterations(trial, tables["iterations"]),
        *_missing_loads(trial, tables["cross_traffic"]),
        *_over(measured["busy_max"], BUSY_MAX, "the CPU was {:.0%} busy over 1 s (limit {:.0%})"),
        *_over(
            measured["steal_max"], STEAL_MAX, "other virtual machines took {:.1%} of the CPU over 1 s (limit {:.0%})"
        ),
        *_over(
            measured["late_p90_ms"],
            max(LATE_P90_MAX * (_median_ms(tables["iterations"]) or 0.0), LATE_P90_MAX_MS),
            "trainers woke up {:.2f} ms late (90th percentile, limit {:.1f} ms)",
        ),
    ]
    dropped = pc.sum(tables["cpu"]["softnet_dropped"]).as_py() or 0
    if dropped:
        found.append(f"the network stack dropped {dropped} packets for want of CPU")
    if trial.spec.topology.queue == "lossless":
        found += _losses(tables)
    return found


def _median_ms(iterations: pa.Table) -> float | None:
    median: float | None = pc.approximate_median(iterations["iteration_ms"]).as_py()
    return median


def _missing_iterations(trial: PlannedTrial, iterations: pa.Table) -> list[str]:
    """Jobs whose workers did not all record what they should: all iterations, or the same ones until they departed."""
    counts = Counter(zip(iterations["job"].to_pylist(), iterations["rank"].to_pylist(), strict=True))
    found = []
    for name, job in trial.spec.jobs.items():
        each = [counts[name, rank] for rank in range(len(job.workers))]
        expected = trial.spec.iterations_of(name)
        if set(each) != {expected} and not (job.departs_ms is not None and len(set(each)) == 1):
            total = expected * len(each)
            found.append(f"{sum(each)} iterations of {name} were recorded, expected {total} ({len(each)} workers)")
    return found


def _missing_loads(trial: PlannedTrial, cross_traffic: pa.Table) -> list[str]:
    told = set(cross_traffic["traffic"].to_pylist())
    sent = [name for name, spec in trial.spec.cross_traffic.items() if spec.load_gbps > 0]
    return [f"cross traffic {name} did not tell what it sent" for name in sent if name not in told]


def _over(value: float | None, limit: float, message: str) -> list[str]:
    return [message.format(value, limit)] if value is not None and value > limit else []


def _losses(tables: Mapping[str, pa.Table]) -> list[str]:
    found = []
    queue = tables["queue"]
    for link, switch, towards in sorted(set(zip(*(queue[name].to_pylist() for name in PORT), strict=True))):
        here = queue.filter(pc.and_(pc.equal(queue["link"], link), pc.equal(queue["host"], switch)))
        drops = increments(here["host_ns"].to_numpy(), np.array(here["drops"].to_pylist()))
        if drops.total:
            found.append(f"lossless link {link} dropped {drops.total} packets towards {towards}")
        if not drops.known.all():
            lost = drops.kind[~drops.known][0]
            found.append(f"the drops of lossless link {link} towards {towards} are not known: the counter was {lost}")
    again = pc.sum(tables["flows"]["retransmitted"]).as_py() or 0
    if again:
        found.append(f"{again} segments were sent again on a lossless fabric")
    return found
