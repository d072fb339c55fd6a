# SPDX-License-Identifier: Apache-2.0
"""ECN marks, drops and pauses per iteration (Cassini's thesis, Figures 4.13 and 4.14): counters joined to iterations.

A counter belongs to a port, its sources are the hosts whose packets it counted, and a source belongs to the job that
has its worker there. Iteration i of a job lasts from the instant at which its first worker begins it to that at which
its first worker begins the next one; the last iteration, to its last worker's end. Nothing is guessed: what no
iteration can claim is unattributed, and all iterations with it are exactly what the port's counter gained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.reading.counted import Counted, Gains, Integers


@dataclass(frozen=True)
class Iterations:
    """When a job's n iterations begin, and the last one ends: `edges_ns`, length n + 1, never falling.

    No edge is off by more than `bound_ns`.
    """

    edges_ns: Integers
    bound_ns: int = 0


@dataclass(frozen=True)
class Joined:
    """What a port's counter gained, and whose it is.

    `jobs` holds per job one value an iteration; in `counts`, 0 where it is not known. The rest of `gained` is
    unattributed: `outside` of every iteration that is known (before, after, in gaps of the samples) though its job is;
    `no_job`, from hosts without a job, or with several; and `no_source`, counted by the port and under no source. That
    one is negative by what came between the readings of a port and of its sources.
    """

    gained: int
    jobs: Mapping[str, Gains]
    outside: int
    no_job: int
    no_source: int

    @property
    def unattributed(self) -> int:
        """What no iteration can claim."""
        return self.outside + self.no_job + self.no_source


def join(
    port: Counted,
    sources: Mapping[str, Sequence[Counted] | None],
    others: Sequence[Counted],
    iterations: Mapping[str, Iterations],
) -> Joined:
    """Give what `port` counted to the iterations of jobs.

    `sources` are the counters of each job's hosts at this port, `others` those of hosts without a job, or with several.
    A job with an empty list was never counted there: it gained nothing while the port was sampled. A job with None may
    have been, and nobody knows: none of its iterations is known.
    """
    of_jobs = sum(each.gained for parts in sources.values() for each in parts or ())
    of_others = sum(each.gained for each in others)
    no_source = port.gained - of_jobs - of_others
    silent = replace(port, totals=np.zeros_like(port.totals))
    untold = replace(silent, known=np.zeros_like(port.known))
    per_job = {
        job: _together([untold] if parts is None else parts or [silent], iterations[job], max(no_source, 0))
        for job, parts in sources.items()
    }
    return Joined(
        port.gained,
        per_job,
        outside=of_jobs - sum(int(gains.counts.sum()) for gains in per_job.values()),
        no_job=of_others,
        no_source=no_source,
    )


def _together(parts: Sequence[Counted], iterations: Iterations, spare: int) -> Gains:
    """What several counters gained in each iteration, and `spare` that may be any iteration's; known where all are."""
    each = [part.between(iterations.edges_ns, iterations.bound_ns) for part in parts]
    known = np.logical_and.reduce([gains.known for gains in each])
    counts = np.add.reduce([gains.counts for gains in each])
    return Gains(np.where(known, counts, 0), np.add.reduce([gains.bounds for gains in each]) + spare, known)
