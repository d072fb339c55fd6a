# SPDX-License-Identifier: Apache-2.0
"""The workers of a trial's jobs: their hosts and command lines, and jobs' descriptions (trainers/PROTOCOL.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.trial import nccl
from roundabout.settings.settings_nic import NIC_TRANSPORTS
from roundabout.spec import ResolvedJob, TrialSpec
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import describe_transfers
from roundabout.spec.profile import Phase
from roundabout.spec.training.trainer import Task

RDMA, TCP = "RDMA", "TCP"  # datapaths of a job
FIRST_PORT = 29500  # default port of torch.distributed; further workers on a host use the next ports
FIRST_SOURCE_PORT = 61_000
"""First source port of flows that have routes of their own: behind those that Linux gives to connections by default.

A worker has as many as a job has flows (64 at most) in each channel, and a host 64 workers at most."""
LAST_SOURCE_PORT = 65_535


@dataclass(frozen=True)
class Worker:
    """One worker of a job: its host, its command line, and its environment."""

    job: str
    rank: int
    host: str
    argv: tuple[str, ...]
    listens: bool = False
    scheduled: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)  # variables for NCCL, if used
    container: tuple[str, ...] = ()  # words that put the command into an image
    nccl_hosts: tuple[str, ...] = ()  # hosts whose NCCL logs to the worker's standard error

    def __str__(self) -> str:
        return f"job {self.job}, worker {self.rank} on {self.host}"


def trial_workers(trial: PlannedTrial, site: HostGroup) -> list[Worker]:
    """Return the workers of all jobs that run in `trial`. Only one job runs if `trial.job` names it."""
    found = []
    for name, job in trial.spec.jobs.items():
        if trial.job not in (None, name):
            continue
        reported = job_description(trial, name, site)
        for rank, host in enumerate(job.workers):
            task = Task(reported, rank, site.hosts[host].prefix, datapath(job, site) == RDMA)
            argv, trainer = job.trainer.argv(task), job.trainer
            logged = tuple(dict.fromkeys(job.workers[each] for each in trainer.nccl_ranks(len(job.workers), rank)))
            exports = _nccl(job, host, site) if logged else {}
            words = trainer.container(task)
            found.append(Worker(name, rank, host, argv, trainer.listens, trainer.scheduled, exports, words, logged))
    return found


def slurm_hosts(trial: PlannedTrial) -> list[str]:
    """Return the hosts with workers that Slurm starts."""
    jobs = [job for name, job in trial.spec.jobs.items() if trial.job in (None, name) and job.trainer.scheduled]
    return list(dict.fromkeys(host for job in jobs for host in job.workers))


def datapath(job: ResolvedJob, site: HostGroup) -> str:
    """Return RDMA if all of the job's hosts, its transport and its trainer support RDMA, else TCP."""
    by_nic = "rdma" in site.capabilities() and job.transport.name in NIC_TRANSPORTS
    return RDMA if by_nic and (job.trainer.rdma_program or job.trainer.nccl) else TCP


def _nccl(job: ResolvedJob, host: str, site: HostGroup) -> dict[str, str]:
    """Return the environment of NCCL. Raises RoundaboutError if the host's device is not known."""
    by_rdma = datapath(job, site) == RDMA
    if by_rdma and site.hosts[host].nccl.hca is None:
        raise RoundaboutError(
            f"the inventory: all.children.rack.hosts.{host}.hca: found none, expected a device and its port, as NCCL "
            "goes by RDMA",
            "hca: mlx5_0:1, or whichever `rdma link` says of the server's nic",
        )
    return nccl.environment(site.hosts[host], job.priority or site.dscps.jobs, rdma=by_rdma)


def datapaths(trial: PlannedTrial, site: HostGroup) -> dict[str, str]:
    """Return the datapath (RDMA or TCP) of each job that runs, by job, for trial.json."""
    return {name: datapath(job, site) for name, job in trial.spec.jobs.items() if trial.job in (None, name)}


def job_description(trial: PlannedTrial, name: str, site: HostGroup) -> dict[str, Any]:
    """Return the description of the job `name` for its workers. Bytes and times are in the hosts' units."""
    job = trial.spec.jobs[name]
    workers: list[dict[str, Any]] = [
        {"name": host, "address": site.hosts[host].address, "port": port}
        for host, port in zip(job.workers, worker_ports(trial.spec, name), strict=True)
    ]
    if trial.spec.topology.hashes_flows:
        ports = source_ports(trial.spec, name)
        workers = [worker | {"source_port": port} for worker, port in zip(workers, ports, strict=True)]
    if trial.spec.topology.has_rails:
        workers = [
            worker | {"nics": [nic.address for nic in site.hosts[host].nics], "nic": job.gpu(rank)}
            for rank, (worker, host) in enumerate(zip(workers, job.workers, strict=True))
        ]
    return {
        "name": name,
        "workers": workers,
        "connections": job.flows,
        "iterations": trial.spec.iterations_of(name),
        "seed": trial.seed,
        "jitter": job.jitter,
        "begins_ms": site.ms_on_host(job.begins_ms),
        "departs_ms": None if job.departs_ms is None else site.ms_on_host(job.departs_ms),
        **({"pxn": True} if trial.spec.topology.crosses_nvlink else {}),
        **({"dscp": dscp} if (dscp := job.priority or site.dscps.jobs) else {}),
        **({"timetable": _timetable(job.held_timetable, site)} if job.held_timetable else {}),
        "phases": [_phase(job, phase, site) for phase in job.profile.phases],
    }


def worker_ports(spec: TrialSpec, name: str) -> list[int]:
    """Return the TCP port of each worker of the job `name`, by rank.

    A job uses one port on all hosts. Further workers of the job on the same host have other ports.
    """
    workers, first = spec.jobs[name].workers, FIRST_PORT + list(spec.jobs).index(name)
    return [first + len(spec.jobs) * workers[:rank].count(host) for rank, host in enumerate(workers)]


def source_ports(spec: TrialSpec, name: str) -> list[int]:
    """Return the source port of the first flow of each worker of the job `name`, by rank.

    A worker's flow of number n to any peer has the n-th port from there. Receivers' ports separate the flows of jobs.
    """
    job = spec.jobs[name]
    ports = job.flows * job.channels
    return [FIRST_SOURCE_PORT + ports * job.workers[:rank].count(host) for rank, host in enumerate(job.workers)]


def check_source_ports(spec: TrialSpec) -> None:
    """Raise UsageError if flows have routes of their own, and a host has too few source ports for those of a job."""
    for name, job in spec.jobs.items() if spec.topology.hashes_flows else ():
        last = max(source_ports(spec, name)) + job.flows * job.channels - 1
        if last > LAST_SOURCE_PORT:
            workers = max(map(job.workers.count, job.workers))
            most = (LAST_SOURCE_PORT + 1 - FIRST_SOURCE_PORT) // (workers * job.channels)
            raise UsageError(
                f"jobs.{name}.flows: found {job.flows} in each of {job.channels} channels, with {workers} workers on "
                f"one host; allowed are {most} at most, because each needs a source port of its own",
                f"set flows to {most} or fewer, or put fewer workers on a host",
            )


def _timetable(timetable: Timetable, site: HostGroup) -> dict[str, float]:
    names = ("shift_ms", "period_ms", "threshold_ms", "late_ms")
    return {name: site.ms_on_host(getattr(timetable, name)) for name in names}


def _phase(job: ResolvedJob, phase: Phase, site: HostGroup) -> dict[str, Any]:
    if phase.compute_ms is not None:
        return {"name": phase.name, "compute_ms": site.ms_on_host(phase.compute_ms)}
    assert phase.bytes is not None
    assert phase.alone_ms is not None
    transfers = phase.transfers(len(job.workers), site.bytes_on_host(phase.bytes))
    reported = describe_transfers(phase.pattern, transfers)
    return {"name": phase.name, "alone_ms": site.ms_on_host(phase.alone_ms), "transfers": reported}
