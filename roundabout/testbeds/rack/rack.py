# SPDX-License-Identifier: Apache-2.0
"""A rack as a group of hosts: the machines of an inventory that a topology needs."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundabout.core.errors import RoundaboutError
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.host_group import (
    Capability,
    DscpClasses,
    EchoTimes,
    Host,
    Nccl,
    Nic,
    Port,
    QueueReader,
    Scaling,
)
from roundabout.runner.hosts.openssh import connect_host
from roundabout.spec.link_events import LinkState
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.rack.examination import DEVICE, GID, GLIBC, MEMLOCK, Finding, query_capabilities, rdma_device
from roundabout.testbeds.rack.inventory import Emulated, HostNic, Inventory
from roundabout.testbeds.rack.switch_counters.readers import queue_readers
from roundabout.testbeds.rack.variables import trial_document

if TYPE_CHECKING:
    from fabric import Connection

RDMA = (DEVICE, GID, GLIBC, "DCQCN")
ORDINARY_RDMA = (DEVICE, GID, GLIBC, MEMLOCK)  # an ordinary user may not read DCQCN of the driver `inbox`
PRIORITIES = ("mlnx_qos", "dcb")


REAL = Fidelity("real", "real: rack", "Measured on real hosts and switches.")
TCP_CLASS = "TCP leaves mlx5 NICs in priority 0, so that PFC does not pause it."
"""Source: docs/reference/rack/changes.md, "Which class traffic rides in"."""
EVENTS_RECIPE = (
    "leave `events` out, and shut the switch's port by hand while the trial runs (docs/how-to/link-events.md); or run "
    "it with --testbed packets or lab"
)
CANNOT = (
    "a NIC's, a switch's or a GPU's own part, where what stands for them has none: "
    "docs/results/rack-in-vms.md lists what `make rack-in-vms` has not",
    "parameters of transports at their size: they are the experiment's own, neither divided nor stretched, as are "
    "marking thresholds",
    "queues and marks at 10 ms: a switch is read once a second, where it counts them",
)


class RackError(RoundaboutError):
    """Error for a rack that differs from its inventory, is unreachable, or whose lease is lost."""


@dataclass(frozen=True)
class Rack(Scaling):
    """The part of a rack that realizes a topology. It is a HostGroup."""

    inventory: Inventory
    topology: Topology
    name: str
    found: frozenset[Capability]  # capabilities that all hosts have
    devices: Mapping[str, str] = field(default_factory=dict)  # RDMA device of each NIC, by the NIC's name

    kind = "rack"

    @classmethod
    def reach(cls, inventory: Inventory, topology: Topology, name: str) -> "Rack":
        """Query the hosts' capabilities, and return the rack. Raises RackError if a host does not answer.

        Raises LostHostError if OpenSSH cannot verify a host's key.
        """
        nics = [nic for host in topology.hosts for nic in inventory.nics_on(topology, host)]
        findings = query_capabilities(inventory, [nic.name for nic in nics])
        for nic in nics:
            first = findings[nic.name][0]
            if not first.good:
                raise RackError(f"host {nic.host} does not answer: {first.found}", first.mend)
        verify_host_keys(inventory, topology.hosts)
        devices = {nic.name: device for nic in nics if (device := rdma_device(findings[nic.name]))}
        needs = RDMA if inventory.common.ansible_become else ORDINARY_RDMA
        return cls(inventory, topology, name, common_capabilities(findings, needs), devices)

    @property
    def scale(self) -> float:
        """Return the divisor of rates. It is 1 unless the inventory's machines emulate a rack."""
        return self.inventory.all.vars.scale

    @property
    def dilation(self) -> float:
        """Return the factor of times. It is 1 unless the inventory's machines emulate a rack."""
        return self.inventory.all.vars.dilation

    @property
    def fidelity(self) -> Fidelity:
        """Return the statement of fidelity: real, or emulated by `emulated`. It includes the jobs' datapath."""
        ridden = "by RDMA where DCQCN is the transport, and over TCP else" if "rdma" in self.found else "over TCP"
        emulated = self.inventory.all.vars.emulated
        measured = emulation_fidelity(emulated) if emulated else REAL
        return replace(measured, about=f"Jobs' bytes went {ridden}. {TCP_CLASS} {measured.about}")

    @property
    def settings_state(self) -> Path | None:
        """Return the folder on hosts for the journal of `settings.py`, or None without root."""
        common = self.inventory.common
        return Path(common.roundabout_state) if common.ansible_become else None

    @property
    def dscps(self) -> DscpClasses:
        """Return the inventory's DSCPs. Jobs have that of the lossless class of switches, and of NICs by RDMA."""
        everywhere = self.inventory.all.vars
        return DscpClasses(everywhere.lossless.dscp, everywhere.cross_traffic_dscp)

    @cached_property
    def hosts(self) -> Mapping[str, Host]:
        """Return the hosts by name, in the topology's order."""
        nics = {host: self.inventory.nics_on(self.topology, host) for host in self.topology.hosts}
        return {host: host_of(self.inventory, host, own, self.devices) for host, own in nics.items()}

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return no port, because this project does not sample a rack's switches."""
        return ()

    @property
    def switch_addresses(self) -> Mapping[str, str]:
        """Return the switch of each address from which the inventory says that switches answer."""
        return {address: name for name, switch in self.inventory.switches.items() for address in switch.addresses}

    def identity(self) -> dict[str, Any]:
        """Return all properties that can make results of two racks differ: the inventory, which has no secrets."""
        inventory = hashlib.sha256(self.inventory.model_dump_json().encode()).hexdigest()
        return {"kind": self.kind, "inventory_sha256": inventory, "capabilities": sorted(self.found)}

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities that all hosts have."""
        return self.found

    def ssh_config(self) -> Path:
        """Return the path of the inventory's SSH configuration, for `ssh -F`."""
        return self.inventory.ssh_config

    def connect(self, host: str) -> "Connection":
        """Return a Fabric connection to `host` that is not open yet."""
        return connect_machine(self.inventory, host, self.inventory.servers[host].ansible_host)

    def settings_document(self, trial: TrialSpec, host: str) -> dict[str, Any]:
        """Return the input of `settings.py apply` on `host` for `trial`.

        It sets the transport of the host's job on the host's NIC and data route.
        """
        return trial_document(trial, host, self.inventory, rdma="rdma" in self.found)

    def prepare(self, trial: TrialSpec) -> None:
        """Raise RackError if the switches, which only the inventory configures, do not suit the trial."""
        if trial.queue != "thresholds":
            raise RackError(
                f"queue: found {trial.queue}, expected thresholds: a rack's ports are the inventory's",
                "leave it out, and state in the experiment's `source` how the switches are set",
            )
        if ranked := [name for name, job in trial.jobs.items() if job.priority]:
            raise RackError(
                f"jobs.{ranked[0]}.priority: found {trial.jobs[ranked[0]].priority}, expected none: an inventory has "
                "one class for all jobs",
                "docs/reference/rack/changes.md says what NICs and switches must do for priorities",
            )
        requested = (transport.thresholds for host in self.hosts if (transport := trial.transport_of(host)))
        for each in filter(None, requested):
            for switch in self.topology.switches:
                ecn = self.inventory.ecn_of(switch)
                if not (ecn and ecn.is_(each)):
                    raise RackError(
                        f"the inventory: switch {switch}: ecn: found {ecn or 'none'}, expected {each} of the "
                        "experiment's transport",
                        "change it and provision, or give the experiment's transport the `ecn` of the inventory",
                    )

    def require_rdma(self, transport: Transport) -> None:
        """Raise RackError if hosts lack RDMA, so that `transport` would be an eBPF program, which only root loads."""
        if "rdma" not in self.found:
            raise RackError(
                f"ansible_become: found false, and transport {transport.name} without RDMA on all hosts; over TCP "
                "it is an eBPF program, which only root loads",
                "`roundabout doctor INVENTORY` says what RDMA lacks; or --set transport.name=cubic",
            )

    def set_link(self, trial: TrialSpec, link: str, state: LinkState) -> None:  # noqa: ARG002
        """Raise RackError if the trial has events, because the operator has a rack's links."""
        refuse_events(trial)

    def set_routes(self, trial: TrialSpec, failed: frozenset[str]) -> None:  # noqa: ARG002
        """Raise RackError if the trial has events, because switches choose a rack's routes."""
        refuse_events(trial)

    def count_lost(self, links: Iterable[str]) -> dict[str, int]:  # noqa: ARG002
        """Return nothing: no event takes packets on a rack."""
        return {}

    def echo_times(self) -> EchoTimes:
        """Return zero: switches do not report the times of marks."""
        return EchoTimes()

    def read_back(self, trial: TrialSpec) -> list[str]:  # noqa: ARG002 - no host is read
        """Return no difference, because trials do not change switches. `verify` compares them."""
        return []

    def switch_samplers(self) -> list[list[str]]:
        """Return no command, because ports of a rack's switches are read once a second only (`queue_readers`)."""
        return []

    def queue_readers(self) -> Mapping[str, QueueReader | str]:
        """Return the readers of the switches' queues, or the reason why there is none."""
        return queue_readers(self.inventory, self.topology.switches, [link.name for link in self.topology.links])


def refuse_events(trial: TrialSpec) -> None:
    """Raise RackError if the trial has events of links, which this project does not change on a rack."""
    if trial.events:
        raise RackError(f"events: found {trial.events[0]}, allowed on a rack are none", EVENTS_RECIPE)


def emulation_fidelity(emulated: Emulated) -> Fidelity:
    """Return the statement of fidelity for machines that emulate a rack."""
    scale, dilation = f"1:{emulated.scale:g}", f"{emulated.dilation:g}"
    return Fidelity(
        "emulated",
        f"emulated: rack, rates at {scale}, time stretched {dilation} times, by {emulated.by}",
        f"What stands for servers and links: {emulated.by}. Links carry {scale} of their rates, all takes {dilation} "
        f"times as long, and messages are 1:{emulated.scale / emulated.dilation:.3g} of their size. Times, rates and "
        "bytes on this page are the papers'. What this cannot show:",
        CANNOT,
    )


def host_of(
    inventory: Inventory, host: str, nics: Sequence[HostNic] = (), devices: Mapping[str, str] | None = None
) -> Host:
    """Return the runner's description of a host with these of its NICs, by default all.

    `devices` are RDMA devices by the NIC's name, which NCCL uses where the inventory has no `hca`.
    """
    own = nics or inventory.nics_of(host)
    first, *others = (Nic(each.nic.nic, each.address) for each in own)
    return Host(
        name=host,
        ssh_alias=inventory.servers[host].ansible_host,
        address=first.address,
        prefix_length=own[0].nic.ipv4.network.prefixlen,
        interface=first.interface,
        prefix=Path(inventory.common.roundabout_prefix),
        nccl=Nccl(_hcas(own, devices or {}), inventory.common.nccl.algorithm, inventory.common.nccl.gid_index),
        further_nics=tuple(others),
    )


def _hcas(nics: Sequence[HostNic], devices: Mapping[str, str]) -> str | None:
    """Return the RDMA devices and ports of NICs as NCCL_IB_HCA lists them, or None if one is not known."""
    found = [each.nic.hca or f"{devices[each.name]}:1" for each in nics if each.nic.hca or each.name in devices]
    return ",".join(found) if len(found) == len(nics) else None  # a function of a NIC has one port


def connect_machine(inventory: Inventory, host: str, alias: str) -> "Connection":
    """Return a Fabric connection to a machine, whose host key OpenSSH verifies, and which is not open yet.

    Raises LostHostError, which names `host`.
    """
    return connect_host(host, inventory.ssh_config, inventory.common.ansible_user, alias)


def verify_host_keys(inventory: Inventory, hosts: Collection[str]) -> None:
    """Have OpenSSH verify the keys of `hosts` in parallel, because each takes a connection. Raises LostHostError.

    Later connections of this process reuse the results.
    """
    with ThreadPoolExecutor(min(32, len(hosts)) or 1, thread_name_prefix="ssh") as pool:
        list(pool.map(lambda host: connect_machine(inventory, host, inventory.servers[host].ansible_host), hosts))


def common_capabilities(findings: Mapping[str, list[Finding]], rdma: Collection[str] = RDMA) -> frozenset[Capability]:
    """Return the capabilities that all hosts have by their findings. `rdma` names those that RDMA requires."""
    good = [{each.name for each in found if each.good} for found in findings.values()]
    capabilities: set[Capability] = {"own clock"}
    if all(names >= set(rdma) for names in good):
        capabilities.add("rdma")
        if all(names & set(PRIORITIES) for names in good):
            capabilities |= {"pfc", "priorities"}
    return frozenset(capabilities)
