# SPDX-License-Identifier: Apache-2.0
"""Execution of `roundabout acceptance`, from the request to the page."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from analysis.expectations import acceptance_metrics as analysis
from roundabout.checks.acceptance import experiments, verdicts
from roundabout.checks.acceptance.acceptance import Acceptance, Part
from roundabout.checks.acceptance.limits import read_limits
from roundabout.checks.check import FailedError, Verdict
from roundabout.checks.report import report
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.runner.hosts.playbooks import ProvisionError
from roundabout.runner.run import Runner
from roundabout.runner.testbed import Testbed
from roundabout.runner.trial.jobs import RDMA, TCP
from roundabout.runner.trial.ssh_testbed import SshTestbed, SshTestbedProvider
from roundabout.spec import Experiment, load_topology
from roundabout.spec.errors import suggest
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport, registry
from roundabout.store import Run, new_run_id
from roundabout.terminal import execution
from roundabout.terminal.playbook import find_drift, reasons_not_compared, run as run_playbook
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo
from roundabout.testbeds.rack.inventory import LosslessClasses
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rdma_class_check import NoRdmaError, Row

SHOWN = 5
FLOWING: tuple[Part, ...] = ("links", "job")


class NoFlowNeededError(RoundaboutError):
    """Signal that ends the session before any flow, because no further part is requested or a part failed."""


@dataclass(frozen=True)
class AcceptanceRequest:
    """The arguments of the command line."""

    topology: str
    parts: Sequence[Part]
    limits: Path | None
    transport: str
    runs: Path
    testbed: str | None
    inventory: Path | None


def accept(request: AcceptanceRequest, *, as_json: bool) -> None:
    """Test a fabric, and store and show the result. Raises FailedError if the fabric fails."""
    execution.undo_when_ended()
    console = Screen(stderr=as_json)
    topology, limits = load_topology(request.topology), read_limits(request.limits)
    transport = _transport(request.transport)
    if not experiments.shared_links(topology):
        raise UsageError(f"topology {topology.name}: found no link where two pairs of hosts meet alone, expected one")
    provider = execution.requested_provider(request.testbed, request.inventory)
    if not isinstance(provider, SshTestbedProvider):
        raise UsageError(f"found testbed {provider.where['testbed']}, expected one whose hosts send packets")
    found = Acceptance(topology=topology.name, where=dict(provider.where), limits=limits)
    with show_progress(console) as observer:
        if request.inventory:
            observer.step("reading settings back")
            found.parts["settings"] = _settings_verdicts(request.inventory)
        if isinstance(provider, RackProvider) and not found.failures:
            observer.step("letting RDMA's packets show where they ride")
            found.parts["rdma"] = rdma_verdicts(partial(provider.check_traffic, f"acceptance-{os.getpid()}"))
        dscp = None if request.inventory else experiments.OWN_DSCP
        lossless = provider.lossless if isinstance(provider, RackProvider) else None
        fabric = FabricTest(topology, transport, dscp, lossless)
        measure(fabric, request.parts, found, Runner(provider, observer, undo), request.runs)
    report(found, request.runs / "acceptance" / new_run_id(), console, as_json=as_json)
    if found.failures:
        reported = [f"{each.of}: {each.name}: found {each.found}, expected {each.expected}" for each in found.failures]
        raise FailedError("the fabric does not pass", "\n".join(reported[:SHOWN]))


def _transport(name: str) -> Transport:
    if name not in registry.transport_names():
        hint = suggest(name, registry.transport_names())
        raise UsageError(f"--transport: found {name!r}, expected one of {', '.join(registry.transport_names())}", hint)
    return Transport.model_validate({"name": name})


@dataclass(frozen=True)
class FabricTest:
    """A fabric under test: topology and transport.

    `dscp` is None if the inventory defines it, and `lossless` is None without an inventory.
    """

    topology: Topology
    transport: Transport
    dscp: int | None
    lossless: LosslessClasses | None = None

    def experiment(self, part: Part) -> Experiment:
        """Return the experiment that measures `part`."""
        if part == "job":
            return experiments.job_experiment(self.topology, self.transport)
        return experiments.link_experiment(self.topology, self.transport, self.dscp)


def measure(fabric: FabricTest, wanted: Sequence[Part], found: Acceptance, runner: Runner, runs: Path) -> None:
    """Measure the parts `wanted` in order, and add their verdicts to `found`. Stop after a failed part.

    Later parts would measure a broken fabric.
    """
    flowing = [part for part in wanted if part in FLOWING]
    for part in flowing or FLOWING[:1]:
        if found.failures:
            return
        look = partial(_check_before_flows, fabric, found, flows=bool(flowing))
        try:
            run = runner.start(fabric.experiment(part), "acceptance", runs, preflight=look)
        except NoFlowNeededError:
            return
        found.runs.append(str(run.path))
        found.parts[part] = (judge_links if part == "links" else _job)(fabric, found, run)


def _check_before_flows(fabric: FabricTest, found: Acceptance, testbed: Testbed, *, flows: bool) -> None:
    """Check the fabric before the first trial. Raises NoFlowNeededError if no trial is needed."""
    assert isinstance(testbed, SshTestbed)
    found.fidelity, seen = testbed.fidelity, testbed.survey()
    found.dscp = fabric.dscp or seen.dscp
    found.parts["paths"] = verdicts.survey_verdicts(fabric.topology, seen, found.limits)
    if found.failures or not flows:
        raise NoFlowNeededError("no flow need be sent")


def _settings_verdicts(inventory: Path) -> list[Verdict]:
    """Return the settings of hosts and switches that differ from the request.

    Raises ProvisionError for one that cannot be reached.
    """
    try:
        reports = run_playbook("verify", str(inventory)).reports
    except ProvisionError as error:
        if not any(find_drift(error.reports)):
            raise
        reports = error.reports
    found = [Verdict(host, what, is_, expected, "fail") for host, what, expected, is_ in find_drift(reports)]
    found = found or [Verdict(verdicts.ALL, "settings", "as provisioned", "as provisioned", "pass")]
    return found + [
        Verdict(host, "configuration", f"not compared; {reason}", "", NOT_MEASURED)
        for host, reason in reasons_not_compared(reports).items()
    ]


def rdma_verdicts(traffic: Callable[[], Iterable[Row]]) -> list[Verdict]:
    """Return the verdicts on RDMA traffic between servers (`verify --traffic`), or `not measured` without RDMA."""
    try:
        rows = list(traffic())
    except NoRdmaError as error:
        return [Verdict(verdicts.ALL, "rdma", f"not measured: {error.message}", "", NOT_MEASURED)]
    return [
        Verdict(f"{row.source} to {row.to}", *reported)
        for row in rows
        for reported in [(each.what, each.found, each.expected, "fail") for each in row.wrong] or [_rdma_verdict(row)]
    ]


def _rdma_verdict(row: Row) -> tuple[str, str, str, Word]:
    """Return the last fields of the verdict on a row in which nothing is wrong."""
    if row.unmeasured:
        return row.what, f"not measured: {row.unmeasured}", row.expected, NOT_MEASURED
    rate = "" if row.gbps is None else f"{row.gbps:.1f} Gbit/s, "
    return row.what, rate + row.found, row.expected, "pass"


def judge_links(fabric: FabricTest, found: Acceptance, run: Run) -> list[Verdict]:
    """Return the verdicts on flows that share links, and on the classes of packets."""
    links = experiments.link_variants(fabric.topology)
    met = analysis.link_figures(run, {variant: link for variant, (link, _) in links.items()})
    figures = {variant: each._asdict() for variant, each in met.items()}
    records = run.trials()
    if fabric.lossless:  # PFC does not pause TCP there, so that its pauses are no figure of these flows
        for variant in figures.keys() & _variants_by(TCP, records):
            figures[variant]["pauses"] = None
    resent = analysis.retransmissions(run)
    by_rdma = bool(_variants_by(RDMA, records))
    return [
        *verdicts.trial_verdicts(records),
        *verdicts.link_verdicts(links, figures, found.limits, by_rdma=by_rdma),
        *verdicts.retransmission_verdicts(fabric.topology, resent, found.limits, by_rdma=by_rdma),
        *judge_classes(fabric, found, run, records),
    ]


def judge_classes(
    fabric: FabricTest, found: Acceptance, run: Run, records: Sequence[Mapping[str, Any]]
) -> Iterator[Verdict]:
    """Yield the verdicts on packets' classes, by captured packets, or by NICs' counters if RDMA is not captured."""
    by_rdma = experiments.CLASSES in _variants_by(RDMA, records)
    is_lost = by_rdma and any(each.get("rdma_not_captured") for each in records)
    counted = analysis.priority_packets(run, experiments.CLASSES) if fabric.lossless else {}
    if fabric.lossless and is_lost:
        priorities = (fabric.lossless.priority, fabric.lossless.cnp_priority)
        yield from verdicts.priority_verdicts(fabric.topology.hosts, counted, priorities, found.limits)
    else:
        yield from verdicts.class_verdicts(fabric.topology, analysis.dscp_counts(run), found.dscp, found.limits)
    if fabric.lossless and not by_rdma:
        yield verdicts.tcp_class_verdict(counted)


def _variants_by(datapath: str, records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the variants of trials in which a job used the datapath."""
    return {str(each["variant"]) for each in records if datapath in each.get("ways", {}).values()}


def _job(_: FabricTest, found: Acceptance, run: Run) -> list[Verdict]:
    slowdowns = analysis.slowdowns(run, experiments.STANDARD, experiments.IDLE)
    return [*verdicts.trial_verdicts(run.trials()), *verdicts.job_verdicts(slowdowns, found.limits)]
