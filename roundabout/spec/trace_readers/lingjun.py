# SPDX-License-Identifier: Apache-2.0
"""Alibaba's Lingjun trace of 2023: `job.csv`, `worker.csv` beside it, and `topo.csv`.

Source: alibaba/alibaba-lingjun-dataset-2023 (Cao et al., SIGCOMM'24). Its README names no columns. The columns of
topo.csv come from the published file, the columns of job.csv and worker.csv from programs that read them.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from roundabout.spec.base import Name
from roundabout.spec.errors import SpecError
from roundabout.spec.reader.json_source import parse
from roundabout.spec.topology import Topology
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers.rows import Row, read_table, row_error
from roundabout.spec.trace_readers.values import (
    MAX_GPUS,
    Instant,
    InstantIfKnown,
    KnownName,
    elapsed,
    is_unknown,
    whole,
)

GPU = "nvidia.com/gpu"


def _gpus(resources: object) -> int:
    """Return the number of GPUs in a worker's request to Kubernetes."""
    if is_unknown(resources):
        return 0
    try:
        return whole(parse(str(resources), "RES").root.get(GPU, 0))
    except (AttributeError, SpecError, ValueError):
        raise ValueError(f'JSON with a whole number of GPUs from 0 to {MAX_GPUS:,}, as {{"{GPU}": "8"}}') from None


class JobRow(Row):
    """A row of job.csv."""

    job_name: Name
    gmt_job_submitted: Instant
    gmt_job_running: InstantIfKnown
    gmt_job_stopped: InstantIfKnown
    gmt_job_finished: InstantIfKnown

    @property
    def ran_s(self) -> float | None:
        """Return the job's duration in seconds, or None if it is unknown."""
        ended = self.gmt_job_stopped if self.gmt_job_finished is None else self.gmt_job_finished
        return elapsed(self.gmt_job_submitted, self.gmt_job_running, ended)


class WorkerRow(Row):
    """A row of worker.csv."""

    job_name: str
    gpus: Annotated[int, BeforeValidator(_gpus), Field(alias="RES")]


class HostRow(Row):
    """A row of topo.csv: a host and the switches above it. A switch's name is unique below one parent switch."""

    ip: KnownName
    core: Annotated[KnownName, Field(alias="DSW")]
    aggregation: Annotated[KnownName, Field(alias="PSW")]
    tor: Annotated[KnownName, Field(alias="ASW")]


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the jobs of a job.csv, with the GPUs from worker.csv beside it.

    Raises SpecError for the first fault in either file.
    """
    gpus: Counter[str] = Counter()
    for worker in read_table(path.with_name("worker.csv"), WorkerRow):
        gpus[worker.job_name] += worker.gpus
    return tuple(
        SubmittedJob(name=job.job_name, at_s=job.gmt_job_submitted, gpus=gpus[job.job_name], ran_s=job.ran_s)
        for job in read_table(path, JobRow)
        if gpus[job.job_name]
    )


def read_topology(path: Path, *, gpus_per_host: int, line_rate_gbps: float, payload_rate_gbps: float) -> Topology:
    """Return the topology of a topo.csv. Its hosts are named h1, h2, ... in the order of rows.

    The file has no rates. Links of hosts get the given rates, and links between switches the sum of the rates of the
    hosts below. That is a guess, without oversubscription. Raises SpecError for the file's first fault.
    """
    hosts = tuple(read_table(path, HostRow))
    above: dict[tuple[str, ...], tuple[str, ...]] = {}
    below: Counter[tuple[str, ...]] = Counter()
    for host in hosts:
        way = (host.core, host.aggregation, host.tor)
        for depth in range(1, len(way) + 1):
            above[way[:depth]] = way[: depth - 1]
            below[way[:depth]] += 1
    names = {(): "root"} | {switch: f"{'dpa'[len(switch) - 1]}{number}" for number, switch in enumerate(above, 1)}
    rates = {"line_rate_gbps": line_rate_gbps, "payload_rate_gbps": payload_rate_gbps}
    ends = [(f"h{number}", names[host.core, host.aggregation, host.tor]) for number, host in enumerate(hosts, 1)]
    links: list[dict[str, Any]] = [{"name": f"{one}-{other}", "ends": (one, other)} for one, other in ends]
    for switch, parent in above.items():
        wide = {rate: value * below[switch] for rate, value in rates.items()}
        links.append({"name": f"{names[switch]}-{names[parent]}", "ends": (names[switch], names[parent]), **wide})
    fields = {
        "name": "lingjun",
        "about": "Hosts of Alibaba's Lingjun trace of 2023 and their switches",
        "source": "alibaba/alibaba-lingjun-dataset-2023, topo.csv",
        **rates,
        "queue": "lossless",
        "hosts": [one for one, _ in ends],
        "switches": list(names.values()),
        "gpus_per_host": gpus_per_host,
        "links": links,
    }
    try:
        return Topology.model_validate(fields)
    except ValidationError as error:
        raise row_error(path, error) from None
