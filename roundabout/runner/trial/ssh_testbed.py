# SPDX-License-Identifier: Apache-2.0
"""The common part of testbeds whose hosts are reached over SSH."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.plan import PlannedTrial
from roundabout.runner.disturbance.effect import estimate_disturbance
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.hosts.slurm_allocation import describe_own_allocation
from roundabout.runner.machine.undo_journal import Entry
from roundabout.runner.program_list import hash_artifacts
from roundabout.runner.session import host_facts as facts
from roundabout.runner.session.connectivity_check import PINGS, ConnectivityReport, check_connectivity
from roundabout.runner.session.host_session import HostSession, open_host_session
from roundabout.runner.testbed import Outcome, RunContext, TestbedProvider
from roundabout.runner.transports import build_plugins
from roundabout.runner.trial import captures, switch_queues, validity_checks
from roundabout.runner.trial.attempt import execute_attempt
from roundabout.runner.trial.jobs import datapaths, slurm_hosts
from roundabout.runner.trial.measurement import Measurement, build_tables, feedback_us, host_units
from roundabout.runner.trial.routes.route_readback import describe_differences
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import Attempt, Identity
from roundabout.store.trial_states import CPU_SHORTAGE, SETTINGS_DIFFER

UNDO_KINDS = ("testbed", "transport", "settings", "namespace")


def check_known(entry: Entry) -> None:
    """Raise RoundaboutError if a journal entry has an unknown kind. Ignoring it would leave its change in place."""
    if entry["kind"] not in UNDO_KINDS:
        raise RoundaboutError(
            f"found a debt of the unknown kind {entry['kind']!r}, expected one of: {', '.join(UNDO_KINDS)}",
            "roundabout clean, with the version whose run that was",
        )


class SshTestbedProvider(TestbedProvider):
    """A provider of testbeds reached over SSH. Subclasses define how hosts are created, provisioned and removed."""

    takes_machine = True
    program_groups: tuple[str, ...] = ("hosts", "controller")
    """The groups of programs in programs.yaml that trials use."""

    @property
    def sampler(self) -> Path | None:
        """Return the path of the sampler for this machine's CPU if the hosts share the CPU, else None."""
        return None

    @abstractmethod
    def create_hosts(self, topology: Topology, name: str) -> HostGroup:
        """Create the hosts with `topology` under `name`, or take a lease of them. The entry "testbed" undoes it."""

    @abstractmethod
    def provision(self, site: HostGroup) -> None:
        """Install the programs of trials on the hosts of `site`."""

    @abstractmethod
    def load_transport(self, transport: Transport, owner: str) -> None:
        """Load a congestion control on the hosts for the run `owner`. The journal entry "transport" undoes it."""

    @abstractmethod
    def connect(self, site: HostGroup, host: str) -> Connection:
        """Return an open connection to a host of `site`."""

    def check_held(self) -> None:
        """Raise RoundaboutError if another program may use the hosts."""

    def artifacts(self, transports: Iterable[Transport], /) -> Mapping[str, str]:
        """Build plugins' transports, and return the hashes of all programs on hosts and of their readers."""
        return {**hash_artifacts(*self.program_groups), **build_plugins(transports)}

    @contextmanager
    def open_testbed(self, topology: Topology, context: RunContext) -> "Iterator[SshTestbed]":
        """Create hosts with `topology` and yield the testbed. At the end, undo all changes and remove the hosts."""
        assert context.journal is not None
        entry = {"kind": "testbed", "name": context.name, "where": dict(self.where)}
        with ExitStack() as stack:
            stack.enter_context(context.journal.register_undo(entry, self.undo))
            yield SshTestbed(self, self.create_hosts(topology, context.name), context, stack)


class SshTestbed:
    """A Testbed of hosts reached over SSH. The hosts are provisioned at the first use."""

    def __init__(self, provider: SshTestbedProvider, site: HostGroup, context: RunContext, stack: ExitStack) -> None:
        self._provider, self._site, self._context, self._stack = provider, site, context, stack
        self._bench: HostSession | None = None
        self._noticed: set[str] = set()  # subjects of notices

    @property
    def kind(self) -> str:
        """Return the host group's kind."""
        return self._site.kind

    @property
    def scale(self) -> float:
        """Return the host group's scale."""
        return self._site.scale

    @property
    def dilation(self) -> float:
        """Return the host group's dilation."""
        return self._site.dilation

    @property
    def fidelity(self) -> Fidelity:
        """Return the host group's fidelity."""
        return self._site.fidelity

    def identity(self) -> dict[str, Any]:
        """Return the host group's identity."""
        return self._site.identity()

    def facts(self) -> dict[str, Any]:
        """Return the facts of the hosts and the offsets of their clocks."""
        session = self._host_session()
        clocks = {host: asdict(reading) for host, reading in session.read_clocks("before").items()}
        return {"hosts": facts.read_host_facts(session), "clocks": clocks}

    def execute(self, trial: PlannedTrial, attempt: Attempt, identity: Identity) -> Outcome:
        """Run the trial once on its hosts. Raises RoundaboutError if another program took the hosts."""
        try:
            session = self._host_session()
        except LostHostError as error:  # as good as lost during the attempt
            return Outcome({}, [str(error)], lost=True)
        self._provider.check_held()
        self._notice_once("allocation", describe_own_allocation(slurm_hosts(trial)))
        received = self._site.echo_times()
        measured = execute_attempt(session, trial, self._context.clock, self._context.observer, attempt)
        self._provider.check_held()
        self._notice_once("routes", describe_differences(measured.routes))
        self._notice_once("captures", captures.describe_gaps(measured.captured))
        self._notice_once("switch queues", switch_queues.describe_gaps(measured.switch_queues))
        into = host_units(self._site, self._context.clock)
        waited = feedback_us(measured, self._site.echo_times().since(received), self._site.dilation)
        found = build_tables(measured, self._site, identity, into)
        captures.store(measured.captured, measured.clock_log, self._site, into, attempt, identity)
        start_ns, end_ns = (
            None if at is None else into.to_paper_instant(at) for at in (measured.start_ns, measured.end_ns)
        )
        strain = validity_checks.resource_stats(found, start_ns, end_ns)
        if any(event.what == "slows" for event in trial.spec.events):
            strain["stalled_share"] = None  # it supposes that a link keeps its rate
        wrong = measured.invalid_reasons or validity_checks.wrong_figures(trial, found)
        biased = [] if measured.invalid_reasons else validity_checks.disturbances(found, strain)
        effect = estimate_disturbance(strain, found["iterations"])
        shortage = [*measured.cpu_shortage, *validity_checks.cpu_shortage(found, strain)]
        record = {"ways": datapaths(trial, self._site), "feedback_us": waited, **_record(measured)}
        record |= {"start_ns": start_ns, **strain, **effect, CPU_SHORTAGE: shortage}
        disturbed = bool(biased) and not wrong
        return Outcome(found, [*wrong, *biased], record, lost=measured.lost_host, disturbed=disturbed)

    def _notice_once(self, subject: str, notice: str | None) -> None:
        """Show the first notice about a subject, such as routes that differ from the plan."""
        if notice and subject not in self._noticed:
            self._context.observer.notice(notice)
            self._noticed.add(subject)

    def survey(self, pings: int = PINGS) -> ConnectivityReport:
        """Check the connectivity of the hosts before any trial, by so many pings. Raises LostHostError."""
        return check_connectivity(self._host_session(), pings)

    def _host_session(self) -> HostSession:
        if self._bench is None:
            self._context.observer.step(f"preparing {len(self._site.hosts)} hosts")
            self._bench = self._stack.enter_context(open_host_session(self._provider, self._site, self._context))
            lacking = switch_queues.describe_gaps(switch_queues.read_once(self._site.queue_readers()))
            self._notice_once("switch queues", lacking)
        return self._bench


def _record(measured: Measurement) -> dict[str, Any]:
    queues = {switch: found.as_json() for switch, found in measured.switch_queues.items()}
    return {
        "settings": measured.settings,
        SETTINGS_DIFFER: measured.settings_differ,
        "clock": measured.clock_log.as_json(),
        "clock_steps": [asdict(step) for step in measured.clock_log.steps()],
        **({"nccl": measured.nccl} if measured.nccl else {}),
        **({"rdma_not_captured": errors} if (errors := captures.rdma_errors(measured.captured)) else {}),
        **({"switch_queues": queues} if queues else {}),
        **({"found_routes": [each._asdict() for each in measured.routes]} if measured.routes else {}),
        **({"lost_packets": measured.lost_packets} if measured.lost_packets else {}),
        "sampling": {host: asdict(kept) for host, kept in measured.sampling().items()},
    }
