# SPDX-License-Identifier: Apache-2.0
"""Which trainer runs where in a trial, with which command line."""

import json
from dataclasses import dataclass
from typing import Any

from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.site import Site
from roundabout.spec.profile import Phase

FIRST_PORT = 29500  # where torch.distributed meets by default; each job has a port of its own


@dataclass(frozen=True)
class Worker:
    """One worker of one job: where it runs and what it is told."""

    job: str
    rank: int
    host: str
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return f"job {self.job}, worker {self.rank} on {self.host}"


def workers(trial: PlannedTrial, testbed: Site) -> list[Worker]:
    """The workers of the jobs that run in `trial`: all of them, or one job's."""
    found = []
    for index, (name, job) in enumerate(trial.spec.jobs.items()):
        if trial.job not in (None, name):
            continue
        hosts = [testbed.hosts[worker] for worker in job.workers]
        phases = [_phase(phase, testbed) for phase in job.profile.phases]
        options = {
            "job": name,
            "addresses": ",".join(host.address for host in hosts),
            "names": ",".join(job.workers),
            "port": FIRST_PORT + index,
            "flows": job.flows,
            "profile": json.dumps({"phases": phases}),
            "iterations": trial.spec.iterations,
            "seed": trial.seed,
            "jitter": job.jitter,
            "start-offset-ms": job.start_offset_ms,
        }
        for rank, host in enumerate(hosts):
            words = [word for key, value in {**options, "rank": rank}.items() for word in (f"--{key}", str(value))]
            found.append(Worker(name, rank, host.name, (str(host.prefix / "bin" / "replay"), *words)))
    return found


def _phase(phase: Phase, testbed: Site) -> dict[str, Any]:
    if phase.bytes is None:
        return {"name": phase.name, "compute_ms": phase.compute_ms}
    return {"name": phase.name, "bytes": testbed.bytes_on_host(phase.bytes), "alone_ms": phase.alone_ms}
