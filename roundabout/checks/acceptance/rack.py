# SPDX-License-Identifier: Apache-2.0
"""The parts of an acceptance test that a rack has and no trial measures: settings, and NICs by RDMA."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from roundabout.checks.acceptance import verdicts
from roundabout.checks.acceptance.acceptance import Acceptance, Part
from roundabout.checks.acceptance.limits import Limits
from roundabout.checks.check import Verdict
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.runner.hosts.playbooks import ProvisionError
from roundabout.runner.observer import Observer
from roundabout.spec.topology import Hop, Topology
from roundabout.terminal.playbook import find_drift, reasons_not_compared, run as run_playbook
from roundabout.testbeds.rack.bandwidth_check import QUEUE_PAIRS, PairFigures
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rdma_class_check import NoRdmaError, Row, UnequalRdmaError

HASHED = "switches hash queue pairs, which may not have crossed"


def settings_verdicts(inventory: Path) -> list[Verdict]:
    """Return the settings of hosts and switches that differ from the request, or cannot be read.

    Raises ProvisionError if none can be read.
    """
    failures: Mapping[str, str] = {}
    try:
        reports = run_playbook("verify", str(inventory)).reports
    except ProvisionError as error:
        if not error.reports:
            raise
        reports, failures = error.reports, error.failures
    found = [Verdict(host, what, is_, expected, "fail") for host, what, expected, is_ in find_drift(reports)]
    drifted = {each.of for each in found}
    found += [
        Verdict(host, "settings", f"not read: {reason}", "as provisioned", "fail")
        for host, reason in failures.items()
        if host not in drifted
    ]
    found = found or [Verdict(verdicts.ALL, "settings", "as provisioned", "as provisioned", "pass")]
    return found + [
        Verdict(host, "configuration", f"not compared; {reason}", "", NOT_MEASURED)
        for host, reason in reasons_not_compared(reports).items()
    ]


@dataclass(frozen=True)
class RdmaNics:
    """The NICs of all servers of a rack, which perftest measures without a trial."""

    provider: RackProvider
    owner: str
    observer: Observer
    before: dict[str, dict[str, int]] = field(default_factory=dict)

    def check_classes(self, found: Acceptance) -> None:
        """Add the verdicts on the priorities that RDMA packets ride in, as `verify --traffic` does."""
        if not found.failures:
            self.observer.step("letting RDMA's packets show where they ride")
            found.parts["rdma"] = rdma_verdicts(partial(self.provider.check_traffic, self.owner))

    def measure(self, topology: Topology, wanted: Sequence[Part], found: Acceptance) -> None:
        """Note counters, and measure bandwidth and latency between all servers, if wanted. Without RDMA do nothing.

        `topology` has the links that the queue pairs' paths may cross.
        """
        if found.failures:
            return
        with suppress(NoRdmaError):
            self.observer.step("reading the counters of NICs")
            self.before.update(self.provider.unchanged_counters(self.owner))
            if "bandwidth" in wanted:
                self.observer.step("letting each NIC write to all others")
                pairs = list(self.provider.measure_pairs(self.owner))
                found.parts["bandwidth"] = [
                    *rdma_bandwidth_verdicts(pairs, self.provider.rdma_gbps, found.limits),
                    *verdicts.crossing_verdicts(_hashed_hops(topology), HASHED),
                ]

    def judge_counters(self, found: Acceptance) -> None:
        """Add the verdicts on the counters that have risen since `measure`."""
        if not self.before:
            return
        after = self.provider.unchanged_counters(self.owner)
        risen = {
            (host, name): value - before.get(name, 0)
            for host, before in self.before.items()
            for name, value in after[host].items()
        }
        found.parts.setdefault("counters", []).extend(verdicts.counter_verdicts(risen, found.limits))


def _hashed_hops(topology: Topology) -> Iterator[Hop]:
    """Yield the links between switches, in each direction, if switches choose paths by hashes of flows.

    The source port of a queue pair, and so its path, is the NIC's choice.
    """
    for link in topology.links if topology.hashes_flows else ():
        if set(link.ends).isdisjoint(topology.hosts):
            yield from (Hop(link, *link.ends), Hop(link, *link.ends[::-1]))


def rdma_bandwidth_verdicts(
    pairs: Sequence[PairFigures], line_rate: Callable[[str, str], float], limits: Limits
) -> list[Verdict]:
    """Return the verdicts on what NICs wrote to each other by RDMA. `line_rate` returns the line rate less headers."""
    by_pair = {(each.source.host.name, each.to.host.name): each for each in pairs}
    most = {pair: line_rate(*pair) for pair in by_pair}
    found = [
        Verdict(" to ".join(pair), wrong.what, wrong.found, wrong.expected, "fail")
        for pair, each in by_pair.items()
        for wrong in each.failed
    ]
    for number in QUEUE_PAIRS:
        gbps = {pair: each.gbps[number] for pair, each in by_pair.items()}
        used = "1 queue pair" if number == 1 else f"{number} queue pairs"
        found += verdicts.bandwidth_verdicts(verdicts.BY_NIC, gbps, most, limits, used)
    latency_us = {pair: each.latency_us for pair, each in by_pair.items()}
    return [*found, *verdicts.latency_verdicts(latency_us, limits)]


def rdma_verdicts(traffic: Callable[[], Iterable[Row]]) -> list[Verdict]:
    """Return the verdicts on RDMA traffic between servers (`verify --traffic`), or `not measured` without RDMA.

    A NIC without RDMA fails if other NICs have it.
    """
    try:
        rows = list(traffic())
    except UnequalRdmaError as error:
        missing = error.missing
        return [Verdict(f"NIC of {error.nic}", missing.name, missing.found, "one, as other NICs have", "fail")]
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
