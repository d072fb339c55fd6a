# SPDX-License-Identifier: Apache-2.0
"""Attribution of marks (or drops, or pauses) to iterations of jobs, by joining counters to iterations.

A port counts marks by the host whose packet it marked, and so by the job whose worker runs there. Iteration i of a job
lasts from the begin of its first worker to the begin of the next iteration's; the last one ends with its last worker.
No mark is attributed by a guess: the marks of all iterations and the unattributed marks add up to the gain of the
port's counter. (Figures 4.13 and 4.14 of the interleaving thesis.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.statistics.cumulative_counter import CumulativeCounter, Gains, Integers


@dataclass(frozen=True)
class IterationEdges:
    """The begins of a job's n iterations, and the end of the last one: `edges_ns`, length n + 1, never falling.

    No edge is off by more than `bound_ns`.
    """

    edges_ns: Integers
    bound_ns: int = 0


@dataclass(frozen=True)
class Attribution:
    """The gain of a port's counter, attributed to jobs.

    `jobs` holds one value for each iteration of each job, with the count 0 if it is unknown. The rest is unattributed:

    outside     the job is known, the iteration is not: it came before the first, after the last, or in a gap of the
                samples
    no_job      it came from a host without a job, or with several
    no_source   the port counted it and named no host; negative where a host's counter was read later than the port's
    """

    gained: int
    jobs: Mapping[str, Gains]
    outside: int
    no_job: int
    no_source: int


def attribute(
    port: CumulativeCounter,
    sources: Mapping[str, Sequence[CumulativeCounter] | None],
    others: Sequence[CumulativeCounter],
    iterations: Mapping[str, IterationEdges],
) -> Attribution:
    """Return the gain of `port`, attributed to the iterations of jobs.

    `sources` holds the counters of each job's hosts at the port. An empty list means that the port never counted the
    job, so each iteration gained 0; None means that all of the job's iterations are unknown. `others` are the counters
    of hosts without a job, or with several jobs.
    """
    of_jobs = sum(each.total_gain for parts in sources.values() for each in parts or ())
    of_others = sum(each.total_gain for each in others)
    no_source = port.total_gain - of_jobs - of_others
    silent = replace(port, totals=np.zeros_like(port.totals))
    untold = replace(silent, known=np.zeros_like(port.known))
    per_job = {
        job: _sum_gains([untold] if parts is None else parts or [silent], iterations[job], max(no_source, 0))
        for job, parts in sources.items()
    }
    return Attribution(
        port.total_gain,
        per_job,
        outside=of_jobs - sum(int(gains.counts.sum()) for gains in per_job.values()),
        no_job=of_others,
        no_source=no_source,
    )


def _sum_gains(parts: Sequence[CumulativeCounter], iterations: IterationEdges, spare: int) -> Gains:
    """Return the sum of several counters' gains in each iteration, known where each of them is.

    `spare` more may belong to any of the iterations: it widens their bounds.
    """
    each = [part.gains_between(iterations.edges_ns, iterations.bound_ns) for part in parts]
    known = np.logical_and.reduce([gains.known for gains in each])
    counts = np.add.reduce([gains.counts for gains in each])
    return Gains(np.where(known, counts, 0), np.add.reduce([gains.bounds for gains in each]) + spare, known)
