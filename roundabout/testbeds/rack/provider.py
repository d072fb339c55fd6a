# SPDX-License-Identifier: Apache-2.0
"""The provider of a rack. It manages leases, programs and transports on the rack's hosts."""

import base64
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.runner.hosts.connections import Channel, Connection, LostHostError, SshConnection
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.playbooks import run_playbook, temporary_inventory
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from roundabout.runner.machine.undo_journal import JOURNALS, Entry, LostHostsError, apply_in_parallel, open_journal
from roundabout.runner.session.host_settings import settings_command
from roundabout.runner.testbed import (
    Check,
    ExporterTarget,
    refuse_mixes,
    refuse_modeled_transports,
    refuse_spreading,
    refuse_switch_features,
    refuse_trees,
)
from roundabout.runner.transports import BUILT, object_folder
from roundabout.runner.trial.captures import check_capture_budget
from roundabout.runner.trial.jobs import check_source_ports
from roundabout.runner.trial.ssh_testbed import SshTestbedProvider, check_known
from roundabout.spec.frames import roce_payload_share
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport, registry as known
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.rack import rack_lease, rail_check
from roundabout.testbeds.rack.bandwidth_check import PairFigures, measure_pairs, unchanged_counters
from roundabout.testbeds.rack.dcqcn_check import Owner, check_timers
from roundabout.testbeds.rack.examination import (
    ADVICE,
    GLIBC,
    GPUDIRECT,
    ORDINARY_USER,
    WRITE,
    Finding,
    examine_hosts,
    query_capabilities,
)
from roundabout.testbeds.rack.exporter_targets import server_target
from roundabout.testbeds.rack.inventory import Inventory, LosslessClasses, check_topology, read_inventory
from roundabout.testbeds.rack.ordinary_user import is_needed, refuse_root, refuse_undo, refuse_without_root
from roundabout.testbeds.rack.port_check import check_ports
from roundabout.testbeds.rack.rack import Rack, RackError, connect_machine, host_of, refuse_events, verify_host_keys
from roundabout.testbeds.rack.rack_lease import Lease
from roundabout.testbeds.rack.rail_check import find_rail_gaps, refuse_first_nics
from roundabout.testbeds.rack.rdma_class_check import (
    EMULATED,
    RdmaEnd,
    Row,
    check_traffic,
    rdma_end,
    refuse_unequal,
)
from roundabout.testbeds.rack.stub_recorder import record_rack
from roundabout.testbeds.rack.variables import deployment, playbook_variables, trial_document

REBOOT_S, RETRY_S = 600, 5
# Optional requirements: of eBPF transports, of `verify --traffic`, of jobs by RDMA and their captures, of GPUDirect,
# which no trainer uses yet, and of performance.
EXTRA = ("BTF", WRITE, GLIBC, "RDMA capture", GPUDIRECT, *ADVICE, ORDINARY_USER)


class RootConnection:
    """A Connection that starts programs as root, through sudo."""

    def __init__(self, connection: Connection) -> None:
        self.host, self._connection = connection.host, connection

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program on the host. Raises LostHostError."""
        return self._connection.start(["sudo", "-n", *argv])

    def close(self) -> None:
        """Close the connection to the host."""
        self._connection.close()


def create_provider(where: Mapping[str, str]) -> "RackProvider":
    """Return the provider of the rack whose inventory file `where` names.

    Raises UsageError without an inventory, and SpecError if the inventory is invalid.
    """
    if "inventory" not in where:
        raise UsageError("testbed rack: found no inventory, expected --inventory FILE", "inventory.example is one")
    return RackProvider(Path(where["inventory"]))


class RackProvider(SshTestbedProvider):
    """The provider of testbeds on the rack of one inventory."""

    def __init__(self, path: Path) -> None:
        """Read the inventory. Raises SpecError."""
        self._path = path
        self._inventory: Inventory = read_inventory(path)
        self.dilation = self._inventory.all.vars.dilation
        self._rack: Rack | None = None
        self._lease: Lease | None = None
        self.where = {"testbed": "rack", "inventory": str(path.resolve())}

    def check_trial(self, trial: TrialSpec, /) -> None:
        """Raise RoundaboutError if the inventory lacks a part of the topology, or if hosts cannot run the trial."""
        features = ("topology.buffer", "topology.trimming", "topology.links.queue_share", "dwrr")
        refuse_switch_features(trial, features, "the inventory alone says how switches are set")
        refuse_spreading(trial, "the inventory does not say that switches spread packets, so reports cannot claim it")
        refuse_mixes(trial)
        refuse_modeled_transports(trial)
        refuse_trees(trial)
        refuse_events(trial)
        check_source_ports(trial)
        check_capture_budget(trial)
        if not self._has_root:
            refuse_without_root(trial)
        check_topology(self._inventory, trial.topology, str(self._path))
        refuse_first_nics(trial)
        for host in trial.topology.hosts:
            trial_document(trial, host, self._inventory, rdma=False)

    def create_hosts(self, topology: Topology, name: str) -> HostGroup:
        """Take a lease on the part of the rack that `topology` needs, and query its hosts' capabilities."""
        inventory = self._inventory
        check_topology(inventory, topology, str(self._path))
        taken = rack_lease.lease_names(
            inventory, topology.hosts, [link.name for link in topology.links], topology.switches
        )
        # A host that was lost during this run gets the time of a reboot to come back.
        deadline = time.monotonic() + (REBOOT_S if self._rack else 0)
        while True:
            self.check_held()
            try:
                self._take_lease(name, taken)  # first, so that no other run gets the rack while a host reboots
                self._rack = Rack.reach(inventory, topology, name)
                return self._rack
            except (RackError, LostHostError):
                if time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_S)

    def _take_lease(self, owner: str, names: Sequence[str]) -> None:
        if self._lease is None:
            self._lease = self._open_lease(owner, names)

    def _open_lease(self, owner: str, names: Sequence[str]) -> Lease:
        host = self._inventory.lease_host
        connection = self._as_root(SshConnection(host, connect_machine(self._inventory, host, host)))
        return Lease(connection, owner, names, None if self._has_root else rack_lease.USERS_LEASES)

    def provision(self, site: HostGroup) -> None:
        """Update the programs of trials on the hosts of `site`."""
        with temporary_inventory(deployment(self._inventory, site.hosts)) as inventory:
            run_playbook("site", [inventory])

    def exporter_targets(self) -> Iterator[ExporterTarget]:
        """Yield the exporters' targets for the servers. No lease is taken, because exporters change nothing."""
        for name in self._inventory.servers:
            connect = partial(self._connected, host_of(self._inventory, name))
            yield server_target(self._inventory, name, self._path.name, connect)

    @contextmanager
    def inventories(self, _name: str, /) -> Iterator[tuple[Path, ...]]:
        """Yield the paths of the inventory and of a file with the Ansible roles' variables.

        Ansible finds the vault beside the inventory. Raises UsageError without root on servers.
        """
        refuse_root(self._inventory, "`provision`, `verify`, `acceptance` and `rollback`")
        with temporary_inventory(playbook_variables(self._inventory)) as variables:
            yield self._path, variables

    def record_answers(self) -> dict[str, Any]:
        """Return the raw answers of every host of the inventory, for tests.

        Raises RoundaboutError if a host does not answer.
        """
        return record_rack(self._inventory, examine_hosts(self._inventory))

    def checks(self) -> Iterator[Check]:
        """Yield the results of all checks on all hosts of the inventory."""
        findings = examine_hosts(self._inventory)
        reached = check_ports(self._inventory, findings)
        for host in self._inventory.servers:
            of_nics = {
                each.name: [*findings[each.name], *reached.get(each.name, ())] for each in self._inventory.nics_of(host)
            }
            for owner, (name, good, found, mend) in _by_owner(host, of_nics):
                needed = not name.startswith(EXTRA) and (self._has_root or is_needed(name))
                yield Check(f"{owner} {name}", good, found, mend, needed=needed)
        for gap in find_rail_gaps(self._inventory):
            yield Check(f"{gap.host} nics", False, gap.found, rail_check.MEND, needed=False)

    def load_transport(self, transport: Transport, owner: str) -> None:
        """Load a transport's program on every host. Users of a program are counted. Linux's own need no loading.

        Raises RackError if an ordinary user would have to load one, because not all hosts have RDMA.
        """
        assert self._rack
        folder = object_folder(transport)
        if folder is None:
            return
        if not self._has_root:
            self._rack.require_rdma(transport)
            return
        for host in self._rack.hosts.values():
            there = host.prefix / "bpf"
            if folder != BUILT:
                there /= "outside"
                self._copy(host, sorted(folder.glob("*.bpf.o")), there)
            self._transport(host, ["load", transport.name, "--owner", owner, "--objects", str(there)])

    def connect(self, site: HostGroup, host: str) -> Connection:
        """Return an open connection to a host. A guard on the host breaks it if the lease may be lost."""
        assert self._lease
        connection = self._as_root(SshConnection(host, site.connect(host)))
        self._lease.guard(connection)
        return connection

    @property
    def payload_rate_gbps(self) -> float:
        """Return the inventory's common payload rate, which links without a rate of their own have."""
        return self._inventory.all.vars.payload_rate_gbps

    @property
    def lossless(self) -> LosslessClasses:
        """Return the inventory's priorities and DSCPs of jobs' packets and CNPs."""
        return self._inventory.all.vars.lossless

    def resolve_host_names(self, jobs: Mapping[str, Sequence[str]], where: str) -> dict[str, tuple[str, ...]]:
        """Return the hosts of each job by the inventory's names. Names of machines (`ansible_host`) are converted.

        Raises UsageError, with the place `where`, for an unknown host.
        """
        known = {server.ansible_host: name for name, server in self._inventory.servers.items()}
        known |= {name: name for name in self._inventory.servers}
        for job, hosts in jobs.items():
            for host in hosts:
                if host not in known:
                    expected = f"one of those in {self._path} ({', '.join(self._inventory.servers)})"
                    raise UsageError(f"{where}: {job}: found host {host}, expected {expected}")
        return {job: tuple(known[host] for host in hosts) for job, hosts in jobs.items()}

    @contextmanager
    def read_only_session(
        self, owner: str, names: Collection[str], links: Iterable[str] = (), switches: Iterable[str] = ()
    ) -> Iterator[dict[Host, Connection]]:
        """Take a lease and yield connections to servers `names`, for measurements that leave nothing changed on them.

        The lease includes `links` and `switches`. Raises BusyError, LostHostError, and RackError if the lease is lost.
        """
        with ExitStack() as stack:
            lease = self._open_lease(owner, rack_lease.lease_names(self._inventory, names, links, switches))
            stack.callback(lease.end)
            verify_host_keys(self._inventory, names)
            found = {}
            for host in (host_of(self._inventory, name) for name in names):
                found[host] = stack.enter_context(closing(self._connected(host)))
                lease.guard(found[host])
            yield found
            lease.check()

    def check_traffic(self, owner: str) -> Iterator[Row]:
        """Send RDMA traffic between all servers, under a lease, and yield the results.

        DCQCN's T is changed on one server at a time, and restored. Rates are those of the rack that an emulated one
        stands for. Raises BusyError, LostHostError, NoRdmaError if a server lacks a requirement, and UnequalRdmaError
        if some NICs have RDMA and another has not.
        """
        everywhere = self._inventory.all.vars
        with self._rdma_rails(owner) as rails:
            for row in chain(check_traffic(rails, everywhere.lossless), self._check_timers(rails, owner)):
                yield row if row.gbps is None else row._replace(gbps=row.gbps * everywhere.scale)

    def measure_pairs(self, owner: str) -> Iterator[PairFigures]:
        """Measure bandwidth and latency by RDMA between all NICs of a rail. Raises as `check_traffic`.

        Rates and times are those of the rack that an emulated one stands for.
        """
        everywhere = self._inventory.all.vars
        with self._rdma_rails(owner) as rails:
            for ends in rails:
                for each in measure_pairs(ends, everywhere.lossless.tos, self._switch_of):
                    gbps = {number: rate * everywhere.scale for number, rate in each.gbps.items()}
                    yield each._replace(gbps=gbps, latency_us=each.latency_us / everywhere.dilation)

    def unchanged_counters(self, owner: str) -> dict[str, dict[str, int]]:
        """Return each NIC's counters that a healthy fabric does not change. Raises as `check_traffic`."""
        with self._rdma_rails(owner) as rails:
            return {end.host.name: unchanged_counters(end.counters()) for ends in rails for end in ends}

    def host_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of each server: its machine's, its own, and its links'."""
        inventory = self._inventory
        return {
            name: (server.ansible_host, name, *(each.nic.link for each in inventory.nics_of(name)))
            for name, server in inventory.servers.items()
        }

    def rdma_gbps(self, source: str, to: str) -> float:
        """Return the line rate less headers of RDMA between two NICs, in Gbit/s."""
        everywhere, nics = self._inventory.all.vars, self._inventory.nics
        line_gbps = min(everywhere.rates(nics[each].nic.link).line_rate_gbps for each in (source, to))
        return line_gbps * roce_payload_share(self._inventory.common.mtu_bytes)

    def _switch_of(self, end: RdmaEnd) -> str:
        return self._inventory.switch_of(self._inventory.nics[end.host.name])

    @contextmanager
    def _rdma_rails(self, owner: str) -> Iterator[list[list[RdmaEnd]]]:
        """Yield the RDMA endpoints of each rail under a lease. This machine's lease is held, too, for undo journals."""
        inventory = self._inventory
        refuse_root(inventory, "`verify --traffic`")
        with (
            machine_lease.hold("machine", "verify --traffic", STATE),
            self.read_only_session(owner, inventory.servers, inventory.ends, inventory.switches) as hosts,
        ):
            found = query_capabilities(inventory, inventory.nics)
            refuse_unequal(found)
            options = EMULATED if inventory.all.vars.emulated else ()
            rails: dict[int, list[RdmaEnd]] = {}
            for host, connection in hosts.items():
                for nic in inventory.nics_of(host.name):
                    alone = replace(host_of(inventory, host.name, [nic]), name=nic.name)
                    end = rdma_end(alone, connection, found[nic.name], options)
                    rails.setdefault(nic.rail, []).append(end)
            yield [*rails.values()]

    def _check_timers(self, rails: Sequence[Sequence[RdmaEnd]], name: str) -> Iterator[Row]:
        inventory = self._inventory
        owner = Owner(name, Path(inventory.common.roundabout_state))
        rates = {each.name: inventory.all.vars.rates(each.nic.link).line_rate_gbps for each in inventory.nics.values()}
        hosts = list(inventory.servers)
        entry = {"kind": "settings", "testbed": name, "owner": name, "hosts": hosts, "where": dict(self.where)}
        ends = [end for rail in rails for end in rail]
        with (
            open_journal(name, self._path.resolve(), JOURNALS) as journal,
            journal.register_undo(entry, lambda _: owner.restore(ends)),
        ):
            for rail in rails:
                yield from check_timers(rail, rates, inventory.all.vars.lossless.tos, owner)

    def check_held(self) -> None:
        """Raise RackError if the lease on the rack is lost or may be lost."""
        if self._lease:
            self._lease.check()

    def undo(self, entry: Entry) -> None:
        """Undo the change of a journal entry on every reachable host.

        Raises LostHostsError if a host is unreachable, and RoundaboutError if undoing fails on a host or needs root.
        """
        check_known(entry)
        kind = entry["kind"]
        if kind == "testbed" and self._lease:
            self._lease.end()
            self._lease = None
        elif kind in ("transport", "settings"):
            refuse_undo(self._inventory, entry, self._path)
            known = [name for name in entry["hosts"] if name in self._inventory.servers]
            try:
                with self._hold_lease(entry["owner"], known):
                    hosts = [host_of(self._inventory, name) for name in known]
                    failed = apply_in_parallel(lambda host: self._undo_on(host, entry), hosts)
            except RoundaboutError as error:
                failed = [error]
            self._explain(entry, failed)

    @contextmanager
    def _hold_lease(self, owner: str, hosts: Sequence[str]) -> Iterator[None]:
        """Hold the lease on these servers. A live run holds it; those of a dead run may have another owner by now."""
        if self._lease or not hosts:
            yield
            return
        lease = self._open_lease(owner, rack_lease.lease_names(self._inventory, hosts, (), ()))
        try:
            yield
        finally:
            lease.end()

    def _explain(self, entry: Entry, failed: list[RoundaboutError]) -> None:
        if failed:
            kind = LostHostsError if all(isinstance(error, LostHostError) for error in failed) else RoundaboutError
            said = "; ".join(error.message for error in failed)
            raise kind(
                f"cannot undo the {entry['kind']} of {entry['owner']} everywhere: {said}",
                "once that is mended: roundabout clean (a host that left the inventory is left alone); for settings "
                f"alone, from any machine: roundabout rollback {self._path} --owner {entry['owner']}",
            )

    def _undo_on(self, host: Host, entry: Entry) -> None:
        if entry["kind"] == "transport":
            if entry["name"] not in known.KERNELS_OWN:
                self._transport(host, ["unload", entry["name"], "--owner", entry["owner"]])
        else:
            state = Path(self._inventory.common.roundabout_state)
            self._on(host, [*settings_command(host, state), "restore", "--owner", entry["owner"]])

    @property
    def _has_root(self) -> bool:
        """Return True if programs run as root on servers, not as an ordinary user."""
        return self._inventory.common.ansible_become

    def _as_root(self, connection: Connection) -> Connection:
        is_direct = self._inventory.common.ansible_user == "root" or not self._has_root
        return connection if is_direct else RootConnection(connection)

    def _transport(self, host: Host, words: Sequence[str]) -> None:
        self._on(host, [str(host.prefix / "bin" / "transport"), *words])

    def _copy(self, host: Host, files: Sequence[Path], folder: Path) -> None:
        """Copy eBPF objects, which are small, to a folder of a host."""
        for file in files:
            words = ["sh", "-c", 'mkdir -p "$0" && base64 -d > "$0/$1"', str(folder), file.name]
            self._on(host, words, base64.b64encode(file.read_bytes()).decode())

    def _connected(self, host: Host) -> Connection:
        return self._as_root(SshConnection(host.name, connect_machine(self._inventory, host.name, host.ssh_alias)))

    def _on(self, host: Host, argv: Sequence[str], stdin: str = "") -> None:
        with closing(self._connected(host)) as connection:
            check_call(connection, argv, stdin)


def _by_owner(host: str, of_nics: Mapping[str, list[Finding]]) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of a host: those that all of its NICs share with the host's name, others with the NIC's."""
    findings = dict.fromkeys(each for found in of_nics.values() for each in found)
    for each in findings:
        owners = [name for name, found in of_nics.items() if each in found]
        for owner in [host] if len(owners) == len(of_nics) else owners:
            yield owner, each
