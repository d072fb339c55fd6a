# SPDX-License-Identifier: Apache-2.0
"""Probes of routes by packets with the addresses and ports of jobs' flows (collectors/route_probe.py)."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from roundabout.plan import PlannedTrial
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.programs import call
from roundabout.runner.session.host_settings import PYTHON
from roundabout.runner.trial.jobs import RDMA, datapath, source_ports, worker_ports
from roundabout.spec import Hop, ResolvedJob

Answers = Sequence[str | None]  # addresses of the routers that answered, by hop; None where no router did


class FlowProbe(NamedTuple):
    """A flow of a job with the header fields of its packets, and its planned route.

    `number` counts the flows between two workers. Ports are None where they are not known before the trial, for which
    `hidden` is the reason.
    """

    user: str
    sender: str
    receiver: str
    number: int
    source: str
    source_port: int | None
    destination: str
    destination_port: int | None
    planned: tuple[Hop, ...]
    hidden: str | None

    @property
    def planned_switches(self) -> tuple[str, ...]:
        """Return the switches on the planned route, in order."""
        return tuple(hop.receiver for hop in self.planned[:-1])


def list_probes(trial: PlannedTrial, site: HostGroup) -> list[FlowProbe]:
    """Return a probe for each flow of the trial's jobs that leaves its host."""
    jobs = [name for name in trial.spec.jobs if trial.job in (None, name)]
    return list(dict.fromkeys(probe for name in jobs for probe in _job_probes(trial, name, site)))


def _job_probes(trial: PlannedTrial, name: str, site: HostGroup) -> Iterator[FlowProbe]:
    job, topology = trial.spec.jobs[name], trial.spec.topology
    hidden = _reason_of_hidden_ports(trial, job, site)
    own_ports, ports = source_ports(trial.spec, name), worker_ports(trial.spec, name)
    for transfer in (transfer for phase in job.profile.phases for transfer in job.transfers(phase)):
        ranks = transfer.sender, transfer.receiver
        for number in job.routed_flows(transfer, topology):
            flow = job.flow(name, *ranks, number, topology)
            if flow.sender == flow.receiver:
                continue
            both = site.hosts[flow.sender].nics, site.hosts[flow.receiver].nics
            source, destination = (own[nic % len(own)].address for own, nic in zip(both, flow.nics, strict=True))
            pair = (None, None) if hidden else (own_ports[ranks[0]] + number, ports[ranks[1]])
            ends = (source, pair[0], destination, pair[1])
            yield FlowProbe(name, flow.sender, flow.receiver, number, *ends, topology.path(*flow), hidden)


def _reason_of_hidden_ports(trial: PlannedTrial, job: ResolvedJob, site: HostGroup) -> str | None:
    """Return why the ports of a job's flows are not known before the trial, or None."""
    if datapath(job, site) == RDMA:
        return "the NIC chooses the UDP source ports of its queue pairs"
    if not job.trainer.binds_source_ports:
        return f"the trainer {job.trainer.name} leaves source ports to the kernel"
    if not trial.spec.topology.hashes_flows:
        return "with static routing trainers leave source ports to the kernel"
    return None


def probe_routes(connection: Connection, host: Host, probes: Sequence[FlowProbe]) -> dict[FlowProbe, Answers | str]:
    """Send the probes of flows with known ports from their host.

    Return for each flow the addresses that answered, or the reason why the host could not send. Raises LostHostError.
    """
    open_probes = [probe for probe in probes if not probe.hidden]
    if not open_probes:
        return {}
    argv = [PYTHON, "-IS", str(host.prefix / "bin" / "route_probe.py")]
    done = call(connection, argv, json.dumps([probe_request(probe) for probe in open_probes]))
    if done.status != 0:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.status}"]
        return dict.fromkeys(open_probes, f"the probe failed on {host.name}: {reason[0]}")
    return dict(zip(open_probes, json.loads(done.stdout), strict=True))


def probe_request(probe: FlowProbe) -> dict[str, str | int | None]:
    """Return a flow as route_probe.py takes it. Only as many routers are probed as the route has switches."""
    names = ("source", "source_port", "destination", "destination_port")
    return {**{name: getattr(probe, name) for name in names}, "hops": len(probe.planned_switches)}
