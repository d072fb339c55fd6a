# SPDX-License-Identifier: Apache-2.0
"""A toy: what the schedules of loads alone do to the tails of iterations.

Cross traffic takes the whole link from a flow's start until its bytes are gone; a job computes, then sends its bytes by
what that leaves. There is no TCP in it: what it separates, `crossgen plan` made different.
`python -m tests.crossgen.toy_tails` prints the 99 % tails at 80 % load.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from roundabout.spec import load_profile, load_topology
from roundabout.testbeds.fluid.loads import read_load

Array = npt.NDArray[np.float64]

LINK_GBPS = load_topology("configuration-b").bottleneck.payload_rate_gbps
LOAD_GBPS = 20.0  # 80 % of 25
DURATION_S = 1200
PROFILES = ("resnet50-ring3", "densenet161-ring3")
BURST = ("--burst-width-us", "1000")
LOADS = {"consistent": (), "burst, drawn": BURST, "burst, exact": (*BURST, "--volumes", "exact")}


def planned(*options: str, load_gbps: float = LOAD_GBPS, duration_s: int = DURATION_S) -> tuple[Array, Array]:
    """Starts in s and bytes of a load's flows."""
    load = read_load(["--load-gbps", str(load_gbps), "--duration-s", str(duration_s), *options]).schedule
    return (load.starts_ms - load.begins_ms) / 1e3, load.sizes


def iterations_s(starts_s: Array, flow_bytes: Array, compute_s: float, job_bytes: float, until_s: float) -> Array:
    """How long a job's iterations take beside such flows, those that end by `until_s`."""
    bytes_per_s = LINK_GBPS * 1e9 / 8
    sent = np.concatenate([[0], np.cumsum(flow_bytes)])
    # What the link had to spare by each flow's start; it has nothing while flows wait.
    spare = np.maximum.accumulate(np.maximum(bytes_per_s * starts_s - sent[:-1], 0))
    at_s, times_s = 0.0, []
    while True:
        begins_s = at_s + compute_s
        before = int(np.searchsorted(starts_s, begins_s))
        had = max(spare[before - 1] if before else 0.0, bytes_per_s * begins_s - sent[before])
        ends_s = float((had + job_bytes + sent[np.searchsorted(spare, had + job_bytes)]) / bytes_per_s)
        if ends_s > until_s:
            return np.array(times_s)
        times_s.append(ends_s - at_s)
        at_s = ends_s


def p99_s(profile: str, load: tuple[Array, Array]) -> float:
    """The 99 % tail of a profile's iterations beside a load."""
    job = load_profile(profile)
    compute_s = sum(phase.compute_ms or 0 for phase in job.phases) / 1e3
    return float(np.quantile(iterations_s(*load, compute_s, job.comm_bytes, DURATION_S), 0.99))


def table() -> Iterable[tuple[str, str, str, float]]:
    """Each profile's tail beside each load."""
    for between in ("steps", "linear"):
        for name, options in LOADS.items():
            load = planned(*options, "--sizes-between", between)
            for profile in PROFILES:
                yield profile, between, name, p99_s(profile, load)


if __name__ == "__main__":
    for row in table():
        print("{:18} {:7} {:13} {:.2f} s".format(*row))
