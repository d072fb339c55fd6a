# SPDX-License-Identifier: Apache-2.0
"""Execution of `roundabout acceptance`, from the request to the page."""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from analysis.expectations import acceptance_metrics as analysis
from analysis.expectations.fabric_benchmarks import PlayedTrials
from roundabout.checks.acceptance import experiments, verdicts
from roundabout.checks.acceptance.acceptance import Acceptance, Part, describe
from roundabout.checks.acceptance.limits import Limits, read_limits
from roundabout.checks.acceptance.rack import RdmaNics, settings_verdicts
from roundabout.checks.acceptance.tables import (
    TABLES,
    FabricTables,
    describe_conditions,
    disturbed_levels,
    measure_tables,
    only_variants,
    tables_experiment,
)
from roundabout.checks.check import FailedError, InconclusiveError, Verdict
from roundabout.checks.report import report
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.verdict_words import INCONCLUSIVE, NOT_MEASURED
from roundabout.runner.observer import Observer
from roundabout.runner.run import Runner
from roundabout.runner.session.connectivity_check import PINGS
from roundabout.runner.testbed import Testbed
from roundabout.runner.trial.jobs import RDMA, TCP
from roundabout.runner.trial.ssh_testbed import SshTestbed, SshTestbedProvider
from roundabout.spec import Experiment, load_experiment, load_topology
from roundabout.spec.errors import suggest
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport, registry
from roundabout.store import Run, new_run_id
from roundabout.terminal import execution
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo
from roundabout.testbeds.rack.inventory import LosslessClasses
from roundabout.testbeds.rack.provider import RackProvider

SHOWN = 5
MORE_PINGS = 100  # pings of each size where some of PINGS are lost: of 1 % loss, ten miss most pairs of hosts
PART_REPEATS = 1  # how often a part is measured again whose trials lacked CPU time, after all their own repeats
FLOWING: tuple[Part, ...] = ("bandwidth", "links", "job")


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
    collective: str | None = None
    soak_hours: float = 0.0


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
        if part == "bandwidth":
            return experiments.bandwidth_experiment(self.topology)
        if part == "job":
            return experiments.job_experiment(self.topology, self.transport)
        return experiments.link_experiment(self.topology, self.transport, self.dscp)


def accept(request: AcceptanceRequest, *, as_json: bool) -> None:
    """Test a fabric, and store and show the result.

    Raises FailedError if the fabric fails, and InconclusiveError if its hosts lacked CPU time, so that it neither
    passes nor fails.
    """
    execution.undo_when_ended()
    console = Screen(stderr=as_json)
    topology, limits = load_topology(request.topology), read_limits(request.limits)
    transport = _transport(request.transport)
    if "job" in request.parts:
        experiments.job_pairs(topology)  # refuses before hosts measure anything
    provider = execution.requested_provider(request.testbed, request.inventory)
    if not isinstance(provider, SshTestbedProvider):
        raise UsageError(f"found testbed {provider.where['testbed']}, expected one whose hosts send packets")
    found = Acceptance(topology=topology.name, where=dict(provider.where), limits=limits, hosts=_host_names(topology))
    fabric = FabricTest(topology, transport, experiments.OWN_DSCP)
    with ExitStack() as at_end, show_progress(console) as observer:
        measure_round = _measure_all(request, fabric, found, Runner(provider, observer, undo))
        folder = request.runs / "acceptance" / new_run_id()
        at_end.callback(report, found, folder, console, as_json=as_json)  # also of an interrupted soak
        soak(request.soak_hours, measure_round, found, observer)
    if found.failures:
        raise FailedError("the fabric does not pass", "\n".join(map(describe, found.failures[:SHOWN])))
    if found.undecided:
        reasons = "\n".join(map(describe, found.undecided[:SHOWN]))
        raise InconclusiveError(
            "the fabric neither passes nor fails, because its hosts lacked CPU time",
            f"{reasons}\nrepeat it when the machine has no other work, or with a smaller topology",
        )


def tabulate(request: AcceptanceRequest, *, as_json: bool) -> None:
    """Measure the tables of BMWG's draft on any testbed that counts bytes, and store and show them.

    Variants whose trials all lacked CPU time are measured again. Raises UsageError for a topology or a testbed without
    any table.
    """
    execution.undo_when_ended()
    console = Screen(stderr=as_json)
    topology, transport = load_topology(request.topology), _transport(request.transport)
    experiment = tables_experiment(topology, transport)
    provider = execution.requested_provider(request.testbed, request.inventory)
    found = FabricTables(
        topology=topology.name,
        where=dict(provider.where),
        conditions=describe_conditions(topology, transport),
        parts={name: [] for name in TABLES},
    )

    def note_fidelity(testbed: Testbed) -> None:
        found.fidelity = testbed.fidelity

    with show_progress(console) as observer:
        runner = Runner(provider, observer, undo)
        runs = [runner.start(experiment, "acceptance", request.runs, preflight=note_fidelity)]
        played = PlayedTrials(runs)
        if short := [each.variant for each in experiment.cells if played.lacks_cpu(each.variant)]:
            runs.append(runner.start(only_variants(experiment, short), "acceptance", request.runs))
    if not len(runs[0].table("counters", valid_only=False)):
        raise UsageError(f"found testbed {provider.where['testbed']}, expected one whose hosts count bytes")
    found.runs += [str(run.path) for run in runs]
    played = PlayedTrials(runs)
    found.rows, found.disturbed = measure_tables(topology, played), disturbed_levels(played)
    records = [each for run in runs for each in run.trials()]
    found.invalid = [f"{each['variant']}: {each['reason']}" for each in records if not each["valid"]]
    report(found, request.runs / "acceptance" / new_run_id(), console, as_json=as_json)


def _measure_all(
    request: AcceptanceRequest, fabric: FabricTest, found: Acceptance, runner: Runner
) -> Callable[[Acceptance], None]:
    """Measure all parts, and on a rack also what no trial measures. Return the function that measures them again."""
    collective = load_experiment(request.collective) if request.collective else None
    provider, nics = runner.provider, None
    if request.inventory:
        runner.observer.step("reading settings back")
        found.parts["settings"] = settings_verdicts(request.inventory)
        fabric = replace(fabric, dscp=None)
    if isinstance(provider, RackProvider):
        fabric, found.hosts = replace(fabric, lossless=provider.lossless), provider.host_names()
        nics = RdmaNics(provider, f"acceptance-{os.getpid()}", runner.observer)
        nics.check_classes(found)

    def measure_round(found: Acceptance) -> None:
        if nics:
            nics.measure(fabric.topology, request.parts, found)
        measure(fabric, request.parts, found, runner, request.runs)
        if nics:
            nics.judge_counters(found)

    measure_round(found)
    if collective and not found.failures:
        run = runner.start(collective, request.collective, request.runs)
        found.runs.append(str(run.path))
        found.parts["collective"] = judge_collective(collective, found, run)
    return measure_round


def _host_names(topology: Topology) -> dict[str, tuple[str, ...]]:
    return {host: (host, *(link.name for link in topology.links_of(host))) for host in topology.hosts}


def _transport(name: str) -> Transport:
    names = (*registry.program_names(), *registry.KERNELS_OWN)
    if name not in names:
        raise UsageError(f"--transport: found {name!r}, expected one of {', '.join(names)}", suggest(name, names))
    return Transport.model_validate({"name": name})


def measure(fabric: FabricTest, wanted: Sequence[Part], found: Acceptance, runner: Runner, runs: Path) -> None:
    """Measure the parts `wanted` in order, and add their verdicts to `found`. Stop after a failed part.

    Later parts would measure a broken fabric. A part with inconclusive figures is measured again.
    """
    flowing = [part for part in wanted if part in FLOWING and part not in found.parts]
    look = partial(_check_before_flows, fabric, found, flows=bool(flowing))
    counters = HostCounters()
    for part in flowing or FLOWING[:1]:
        for _ in range(1 + PART_REPEATS):
            if found.failures:
                return
            try:
                run = runner.start(fabric.experiment(part), "acceptance", runs, preflight=look)
            except NoFlowNeededError:
                return
            found.runs.append(str(run.path))
            found.parts[part] = JUDGES[part](fabric, found, run)
            counters.add(run)
            found.parts["counters"] = counters.judge(found.limits)
            if all(each.verdict != INCONCLUSIVE for each in found.parts[part]):
                break


class HostCounters:
    """The rises of hosts' counters that a healthy fabric does not change. A repeated trial replaces the one before."""

    def __init__(self) -> None:
        self._changes: Counter[analysis.Pair] = Counter()
        self._dropped: dict[str, Counter[analysis.Pair]] = {}
        self._shortages: dict[str, str] = {}

    def add(self, run: Run) -> None:
        """Add the rises of a run's trials."""
        self._changes.update(analysis.carrier_changes(run))
        for trial, counts in analysis.dropped_packets(run).items():
            self._dropped[trial] = counts
            self._shortages.pop(trial, None)
        self._shortages.update(analysis.signs_of_shortage(run))

    def judge(self, limits: Limits) -> list[Verdict]:
        """Return the verdicts on the sums over all trials."""

        def judge(without: Collection[str]) -> list[Verdict]:
            risen = self._changes.copy()
            for trial, counts in self._dropped.items():
                if trial not in without:
                    risen.update(counts)  # keeps counters that did not rise
            return verdicts.counter_verdicts(risen, limits)

        return verdicts.judge_with_shortages(judge, self._shortages)


def soak(hours: float, measure_round: Callable[[Acceptance], None], found: Acceptance, observer: Observer) -> None:
    """Repeat all measurements for `hours`, until one fails, and add a verdict on each round to `found`."""
    until, alone = time.monotonic() + hours * 3600, []
    while not found.failures and time.monotonic() < until:
        rounds = found.parts.setdefault("soak", [])
        observer.step(f"soak: round {len(rounds) + 1}, {(until - time.monotonic()) / 3600:.1f} hours left")
        own, name = replace(found, parts={}, runs=[]), f"round {len(rounds) + 1}"
        try:
            measure_round(own)
        except BaseException as error:
            is_stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
            rounds.append(Verdict(name, "ended", "broke off", "its end", NOT_MEASURED if is_stopped else "fail"))
            raise
        finally:
            found.runs += own.runs
        judged, when = [each for part in own.parts.values() for each in part], f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"
        alone += [each.value for each in judged if each.name == "slowdown_idle" and each.value]
        rounds.append(Verdict(name, "ended", f"{when}, {len(judged)} figures", "", None))
        rounds += own.failures + own.undecided
    if len(alone) > 1:
        found.parts["soak"].append(Verdict("all rounds", "jct_ratio_cv", f"{stdev(alone) / mean(alone):.3g}", "", None))


def _check_before_flows(fabric: FabricTest, found: Acceptance, testbed: Testbed, *, flows: bool) -> None:
    """Check the fabric before the first trial. Raises NoFlowNeededError if no trial is needed."""
    assert isinstance(testbed, SshTestbed)
    found.fidelity, seen = testbed.fidelity, testbed.survey()
    if any(0 < lost < PINGS for each in seen.pinged for lost in (each.lost_small, each.lost_large)):
        seen = testbed.survey(MORE_PINGS)
    found.dscp = fabric.dscp or seen.dscp
    found.parts["paths"] = verdicts.survey_verdicts(fabric.topology, seen, found.limits)
    if found.failures or not flows:
        raise NoFlowNeededError("no flow need be sent")


def judge_bandwidth(fabric: FabricTest, found: Acceptance, run: Run) -> list[Verdict]:
    """Return the verdicts on what each host sent to each other one by TCP."""
    rates, records = analysis.bandwidths(run), run.trials()
    shortages = analysis.cpu_shortages(run)
    trials = {str(each["variant"]): str(each["trial"]) for each in records}

    def judge(without: Collection[str]) -> list[Verdict]:
        flows = [
            flow
            for variant, flows in experiments.bandwidth_flows(fabric.topology).items()
            for flow in flows
            if trials[variant] not in without
        ]
        gbps = {flow: rates.get(experiments.flow_name(flow), 0.0) for flow in flows}
        most_gbps = {flow: experiments.payload_gbps(fabric.topology, flow) for flow in flows}
        routes = verdicts.by_direction(fabric.topology)
        return verdicts.bandwidth_verdicts(routes, gbps, most_gbps, found.limits, "one flow") if flows else []

    return [
        *verdicts.trial_verdicts(records, analysis.signs_of_shortage(run)),
        *verdicts.judge_with_shortages(judge, shortages),
        *verdicts.crossing_verdicts(experiments.uncrossed_hops(fabric.topology), "no flow crossed"),
    ]


def judge_collective(experiment: Experiment, found: Acceptance, run: Run) -> list[Verdict]:
    """Return the verdicts on the bus bandwidth that the jobs' program reported, such as nccl-tests."""
    rates, judged = analysis.bus_bandwidths(run), []
    topology, jobs = experiment.cells[0].spec.topology, experiment.cells[0].spec.jobs
    for name, job in jobs.items():
        most_gbps = min(sum(link.payload_rate_gbps for link in topology.links_of(host)) for host in job.hosts)
        share = (rates[name] / most_gbps, None) if name in rates else None
        judged.append(verdicts.judge_figure(f"job {name}", "bus_bandwidth", share, found.limits))
    shortages = analysis.cpu_shortages(run)
    shortage = next(iter(shortages.values()), None)
    return [*verdicts.trial_verdicts(run.trials(), analysis.signs_of_shortage(run)), *verdicts.weaken(judged, shortage)]


def judge_links(fabric: FabricTest, found: Acceptance, run: Run) -> list[Verdict]:
    """Return the verdicts on flows that share links, and on the classes of packets."""
    links = experiments.link_variants(fabric.topology)
    met = analysis.link_figures(run, {variant: link for variant, (link, _) in links.items()})
    figures = {variant: each._asdict() for variant, each in met.items()}
    records, shortages, signs = run.trials(), analysis.cpu_shortages(run), analysis.signs_of_shortage(run)
    if fabric.lossless:  # PFC does not pause TCP there, so that its pauses are no figure of these flows
        for variant in figures.keys() & _variants_by(TCP, records):
            figures[variant]["pauses"] = None
    by_rdma = bool(_variants_by(RDMA, records))
    short = {each["variant"]: shortages.get(each["trial"]) for each in records}

    def judge_link(variant: str) -> list[Verdict]:
        return verdicts.link_verdicts({variant: links[variant]}, figures, found.limits, by_rdma=by_rdma)

    def judge_resent(without: Collection[str]) -> list[Verdict]:
        resent = analysis.retransmissions(run, without)
        if without and not resent:
            return []
        return verdicts.retransmission_verdicts(fabric.topology, resent, found.limits, by_rdma=by_rdma)

    return [
        *verdicts.trial_verdicts(records, signs),
        *_judge_each(judge_link, {variant: short.get(variant) for variant in links}),
        *verdicts.unshared_verdicts(links),
        *verdicts.judge_with_shortages(judge_resent, signs),
        *judge_classes(fabric, found, run, records, short.get(experiments.CLASSES)),
    ]


def judge_classes(
    fabric: FabricTest,
    found: Acceptance,
    run: Run,
    records: Sequence[Mapping[str, Any]],
    shortage: str | None = None,
) -> Iterator[Verdict]:
    """Yield the verdicts on packets' classes, by captured packets, or by NICs' counters if RDMA is not captured.

    A `shortage` of CPU time explains missing packets, and no packets in other classes.
    """
    by_rdma = experiments.CLASSES in _variants_by(RDMA, records)
    is_lost = by_rdma and any(each.get("rdma_not_captured") for each in records)
    counted = analysis.priority_packets(run, experiments.CLASSES) if fabric.lossless else {}
    if fabric.lossless and is_lost:
        priorities = (fabric.lossless.priority, fabric.lossless.cnp_priority)
        yield from verdicts.priority_verdicts(fabric.topology.hosts, counted, priorities, found.limits)
    else:
        counts = analysis.dscp_counts(run)
        judged = verdicts.class_verdicts(fabric.topology, counts, found.dscp, found.limits)
        yield from verdicts.weaken(judged, None if counts else shortage)
    if fabric.lossless and not by_rdma:
        yield verdicts.tcp_class_verdict(counted)


def _variants_by(datapath: str, records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the variants of trials in which a job used the datapath."""
    return {str(each["variant"]) for each in records if datapath in each.get("ways", {}).values()}


def _judge_job(_: FabricTest, found: Acceptance, run: Run) -> list[Verdict]:
    slowdowns = analysis.slowdowns(run, experiments.STANDARD, experiments.IDLE)
    records, shortages = run.trials(), analysis.cpu_shortages(run)
    short = {each["variant"]: shortages.get(each["trial"]) for each in records if each["valid"]}
    return [
        *verdicts.trial_verdicts(records, analysis.signs_of_shortage(run)),
        *_judge_each(
            lambda name: verdicts.job_verdicts({name: slowdowns[name]}, found.limits),
            {name: short.get(name) or short.get(experiments.IDLE) for name in slowdowns},
        ),
    ]


def _judge_each(judge: Callable[[str], list[Verdict]], shortages: Mapping[str, str | None]) -> Iterator[Verdict]:
    """Yield the verdicts of `judge` on each variant. Failures of variants that lacked CPU time are inconclusive."""
    for variant, shortage in shortages.items():
        yield from verdicts.weaken(judge(variant), shortage)


JUDGES: Mapping[str, Callable[[FabricTest, Acceptance, Run], list[Verdict]]] = {
    "bandwidth": judge_bandwidth,
    "links": judge_links,
    "job": _judge_job,
}
