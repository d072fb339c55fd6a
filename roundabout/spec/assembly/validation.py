# SPDX-License-Identifier: Apache-2.0
"""Checks that involve several fields, such as jobs and topology, or expectations and levels."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from roundabout.spec.base import MAX_NAME_LENGTH
from roundabout.spec.cluster import Cluster
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.expectation import Basis, Expectation, ExpectationCheck, Order
from roundabout.spec.experiment import ONLY_VARIANT, Cell
from roundabout.spec.job import Job
from roundabout.spec.preconditions import find_missing_signals
from roundabout.spec.profile import Profile
from roundabout.spec.reader.yaml_source import Block, Document
from roundabout.spec.topology import Topology
from roundabout.spec.transports import find_violation
from roundabout.spec.transports.queues import QUEUES, QueueName
from roundabout.spec.treatment import Treatment
from roundabout.spec.trial_spec import TrialSpec


class Merged(NamedTuple):
    """One combination of levels and its merged fields, which keep the places where they were written."""

    document: Document
    levels: dict[str, str | int | float]
    root: Block

    def error(self, location: tuple[str | int, ...], found: str, expected: str, hint: str | None = None) -> SpecError:
        """Return a SpecError about the value at `location` of the merged fields."""
        return self.document.error(location, found, expected, hint=hint, root=self.root)

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))

    @property
    def setting(self) -> str:
        """Return the levels as a phrase for messages about a combination of fields."""
        at = ", ".join(f"{factor} {level}" for factor, level in self.levels.items())
        return f" (with {at})" if at else ""


class _WorkerStay(NamedTuple):
    """A worker on a host, from its job's arrival until its certain departure."""

    job: str
    comes_ms: float
    goes_ms: float


def check_workers(merged: Merged, treatment: Treatment, topology: Topology) -> None:
    """Raise SpecError if a worker's host is not in the topology, or if a host ever has more workers than GPUs."""
    stays: dict[str, list[_WorkerStay]] = {}
    for name, job in treatment.jobs.items():
        for index, worker in enumerate(job.workers):
            here = ("jobs", name, "workers", index)
            if worker not in topology.hosts:
                expected = f"a host of {topology.name} ({list_choices(topology.hosts)})"
                raise merged.error(here, quote_value(worker), expected, suggest(worker, topology.hosts))
            there = stays.setdefault(worker, [])
            stay = _WorkerStay(name, job.arrives_ms, math.inf if job.departs_ms is None else job.departs_ms)
            if len(there) >= topology.gpus_per_host and _most_at_once(there, stay) == topology.gpus_per_host:
                raise _no_room(merged, here, topology, stays)
            there.append(stay)


def _most_at_once(there: Sequence[_WorkerStay], stay: _WorkerStay) -> int:
    """Return the most workers that are on a host at one instant of a stay, which is one at which a worker arrives."""
    instants = [stay.comes_ms, *(each.comes_ms for each in there if stay.comes_ms <= each.comes_ms < stay.goes_ms)]
    return max(sum(each.comes_ms <= at_ms < each.goes_ms for each in there) for at_ms in instants)


def _no_room(
    merged: Merged, here: tuple[str | int, ...], topology: Topology, stays: dict[str, list[_WorkerStay]]
) -> SpecError:
    """Return the error about one worker more than its host has GPUs."""
    name, index = str(here[1]), here[-1]
    assert isinstance(index, int)
    worker = merged.root["jobs"][name]["workers"][index]
    free = [host for host in topology.hosts if len(stays.get(host, ())) < topology.gpus_per_host]
    hint = f"hosts {'with a free GPU' if topology.gpus_per_host > 1 else 'without a worker'}: {list_choices(free)}"
    others = " and ".join(dict.fromkeys(each.job for each in stays[worker]))
    found = f"{worker}, already a worker of {others}{merged.setting}"
    times = "once" if topology.gpus_per_host == 1 else f"at most {topology.gpus_per_host} times, its GPUs"
    return merged.error(here, found, f"each host {times}, until a job departs", hint if free else None)


def check_shared_hosts(merged: Merged, treatment: Treatment) -> None:
    """Raise SpecError if jobs that share a host have different transports. A host has only one transport."""
    first: dict[str, str] = {}
    for name, job in treatment.jobs.items():
        for worker in job.workers:
            other = first.setdefault(worker, name)
            if treatment.jobs[other].transport != job.transport:
                found = f"another than {other}'s, which shares {worker} with {name}{merged.setting}"
                raise merged.error(("jobs", name, "transport"), found, "one transport a host")


def port_queue(merged: Merged, treatment: Treatment) -> QueueName:
    """Return the kind of queue at switch ports.

    `auto` gives the kind that all transports in use declare. Raises SpecError if these transports declare different
    kinds, or if a transport sets `ecn` but the queue is drop-tail, which never marks.
    """
    users: dict[str, Job | CrossTraffic | Cluster] = {**treatment.jobs, **treatment.cross_traffic}
    users |= {"cluster": treatment.cluster} if treatment.cluster else {}
    declared = {name: user.transport.intended_queue for name, user in users.items()}
    if treatment.queue == "auto" and len(set(declared.values())) > 1:
        found = ", ".join(f"{users[name].transport.name} of {name} for {queue}" for name, queue in declared.items())
        raise merged.error(
            ("queue",), f"transports that declare different queues: {found}{merged.setting}", list_choices(QUEUES)
        )
    queue = next(iter(declared.values())) if treatment.queue == "auto" else treatment.queue
    with_ecn = [name for name, user in users.items() if user.transport.ecn]
    if queue == "drop-tail" and with_ecn:
        found = f"drop-tail, beside the `ecn` of {with_ecn[0]}'s transport{merged.setting}"
        raise merged.error(("queue",), found, "thresholds, step or red, or no `ecn`")
    if treatment.red_weight is not None and queue != "red":
        found = f"{treatment.red_weight:g} beside a queue of kind {queue}{merged.setting}"
        raise merged.error(("red_weight",), found, "it with `queue: red` alone")
    return queue


def check_scheduling(merged: Merged, spec: TrialSpec) -> None:
    """Raise SpecError if `dwrr` has weights of queues that no packet uses."""
    if spec.dwrr and len(spec.dwrr.weights) > spec.data_queues:
        found = f"weights of {len(spec.dwrr.weights)} queues{merged.setting}"
        used = f"at most {spec.data_queues}, the queues that the jobs' priorities use"
        raise merged.error(("dwrr", "weights"), found, used, "give jobs other priorities, or fewer weights")


def check_pattern(merged: Merged, name: str, job: Job, profile: Profile) -> None:
    """Raise SpecError if the job's number of workers is not its profile's, or is odd although phases send in pairs."""
    found, here = f"{len(job.workers)} workers{merged.setting}", ("jobs", name, "workers")
    if profile.workers not in (None, len(job.workers)):
        raise merged.error(here, found, f"the {profile.workers} for which {profile.name} is")
    if len(job.workers) % 2 and any(phase.pattern == "pairs" and not phase.groups for phase in profile.phases):
        raise merged.error(here, found, f"an even number: {profile.name} sends in pairs")


def check_rules(merged: Merged, name: str, job: Job, profile: Profile, topology: Topology) -> None:
    """Raise SpecError if the job's parameters, profile or links violate a rule that its transport declares."""
    slowest_gbps = min(link.payload_rate_gbps for host in job.hosts for link in topology.links_of(host))
    values = {**job.transport.with_line_rate(slowest_gbps), "compute_us": profile.compute_ms * 1000}
    declared = job.transport.declaration
    for rule in declared.rules if declared else ():
        if broken := find_violation(rule, values):
            found, expected = broken
            raise merged.error(("jobs", name, "transport", rule.left), f"{found}{merged.setting}", expected)


def check_signals(merged: Merged, spec: TrialSpec) -> None:
    """Raise SpecError if switch ports give a congestion control no signal at all."""
    for missing in find_missing_signals(spec):
        if missing.remaining is None:
            raise merged.error((*missing.user, "transport"), f"{missing.found}{merged.setting}", missing.allowed)


def check_cross_traffic(merged: Merged, treatment: Treatment, topology: Topology) -> None:
    """Raise SpecError if the ends of cross traffic are not distinct hosts, or if its load exceeds a link's rate."""
    for name, traffic in treatment.cross_traffic.items():
        here = ("cross_traffic", name)
        ends: list[tuple[tuple[str | int, ...], str]] = [
            ((*here, "from", *([index] if len(traffic.senders) > 1 else [])), sender)
            for index, sender in enumerate(traffic.senders)
        ]
        ends += [((*here, "to", index), receiver) for index, receiver in enumerate(traffic.receivers)]
        for where, host in ends:
            if host not in topology.hosts:
                expected = f"a host of {topology.name} ({list_choices(topology.hosts)})"
                raise merged.error(where, quote_value(host), expected, suggest(host, topology.hosts))
        for where, host in ends[1:]:
            if (*traffic.senders, *traffic.receivers).count(host) > 1:
                senders = "the sender" if len(traffic.senders) == 1 else "all senders"
                raise merged.error(where, quote_value(host), f"other hosts than {senders}, each once")
        if traffic.kind == "iperf" and len(traffic.receivers) > 1:
            raise merged.error((*here, "to"), f"{len(traffic.receivers)} hosts", "one: iperf has one server")
        nics = min(len(topology.links_of(host)) for _, host in ends)
        if traffic.rail >= nics:
            raise merged.error((*here, "rail"), str(traffic.rail), f"less than {nics}, the number of NICs of its hosts")
        rate = _carried_gbps(traffic, topology)
        if traffic.load_gbps > rate * (1 + 1e-9):
            found = f"{traffic.load_gbps:g} Gbit/s{merged.setting}"
            raise merged.error((*here, "load_gbps"), found, f"at most the {rate:g} Gbit/s of payload on its path")


def _carried_gbps(traffic: CrossTraffic, topology: Topology) -> float:
    """Return the largest load that all links carry, if pairs of senders and receivers share it evenly.

    Where several paths lead on, flows may meet on a link by the choice of switches. That is a result, so only the links
    of hosts are checked.
    """
    flows = [flow for each in traffic.by_sender("").values() for flow in each.flows]
    paths = [topology.path(*flow) for flow in flows]
    shares = Counter(hop for path in paths for hop in (path if topology.is_tree else {path[0], path[-1]}))
    return min(hop.link.payload_rate_gbps * len(flows) / number for hop, number in shares.items())


def traffic_by_sender(merged: Merged, treatment: Treatment) -> dict[str, CrossTraffic]:
    """Return the cross traffic of each sender, by name.

    Raises SpecError if two cross traffics would have one name, or if a name would be too long.
    """
    found: dict[str, CrossTraffic] = {}
    for name, traffic in treatment.cross_traffic.items():
        for own, part in traffic.by_sender(name).items():
            if own in found or len(own) > MAX_NAME_LENGTH:
                expected = f"names that differ and have at most {MAX_NAME_LENGTH} characters with senders' names"
                raise merged.error(("cross_traffic", name), quote_value(own), expected)
            found[own] = part
    return found


def check_clocks(merged: Merged, treatment: Treatment) -> None:
    """Raise SpecError if Cassini's `clocks` names a job that does not exist."""
    for name in treatment.cassini.clocks if treatment.cassini else ():
        if name not in treatment.jobs:
            expected = f"a job ({list_choices(treatment.jobs)})"
            raise merged.error(("cassini", "clocks", name), quote_value(name), expected, suggest(name, treatment.jobs))


def check_capture(merged: Merged, treatment: Treatment, topology: Topology) -> None:
    """Raise SpecError if `capture` names a host that is not in the topology."""
    for index, host in enumerate(treatment.capture.hosts if treatment.capture else ()):
        if host not in topology.hosts:
            expected = f"a host of {topology.name} ({list_choices(topology.hosts)})"
            hint = suggest(host, topology.hosts)
            raise merged.error(("capture", "hosts", index), quote_value(host), expected, hint)


def check_demand(merged: Merged, spec: TrialSpec) -> None:
    """Raise SpecError if a link cannot carry a job's profile even without other traffic.

    Where several paths lead on, a job's own flows may meet on a link by the choice of switches. That is a result, so
    only the links of hosts are checked.
    """
    bytes_by_hop = spec.bytes_by_hop if spec.topology.is_tree else spec.bytes_by_host_hop
    for name, job in spec.jobs.items():
        for phase in job.profile.phases:
            for hop, size in bytes_by_hop(name, phase).items():
                gbps = size * 8 / (phase.alone_ms or 0.0) / 1e6
                if gbps > hop.link.payload_rate_gbps * (1 + 1e-9):
                    found = f"phase '{phase.name}' of {job.profile.name} sending at {gbps:.1f} Gbit/s{merged.setting}"
                    expected = (
                        f"at most the {hop.link.payload_rate_gbps:g} Gbit/s of payload that its path in "
                        f"{spec.topology.name} carries"
                    )
                    raise merged.error(("jobs", name, "profile"), found, expected)


def check_transports(document: Document, cells: Sequence[Cell]) -> None:
    """Raise SpecError if two transports of the same name have different sources, because a kernel has one of a name."""
    files: dict[str, str | None] = {}
    for cell in cells:
        for user in cell.spec.users:
            name, file = user.transport.name, user.transport.file
            if files.setdefault(name, file) != file:
                found = f"{file} beside {files[name]}, both called {name}"
                raise document.error(("transport",), found, "transports with names of their own")


def check_dependencies(merged: Merged, cell: Cell, cells: list[Cell]) -> None:
    """Raise SpecError if a dependency of the cell has no trial at the cell's other levels, or if it is circular."""
    for here, variant in cell.dependencies.items():
        if not any(other.variant == variant and have_equal_other_levels(cell, other) for other in cells):
            known = [other.variant for other in cells if have_equal_other_levels(cell, other) and other is not cell]
            raise merged.error(here, quote_value(variant), f"a variant run at these levels ({list_choices(known)})")
        if cell.variant in with_dependencies(variant, cell, cells):
            raise merged.error(
                here, f"{variant}, which depends on {cell.variant} itself", "dependencies without a circle"
            )


def check_inputs(merged: Merged, cell: Cell, cells: list[Cell]) -> None:
    """Raise SpecError if a variant that measures profiles for others lacks a job or does not run it alone."""
    for here, variant in cell.dependencies.items():
        if here[0] == "depends_on":
            continue
        names = [str(here[1])] if here[0] == "jobs" else list(cell.spec.jobs)
        for other in cells:
            if other.variant == variant and have_equal_other_levels(cell, other):
                for name in names:
                    _check_alone(merged, here, name, other)


def _check_alone(merged: Merged, here: tuple[str | int, ...], name: str, measuring: Cell) -> None:
    jobs = measuring.spec.jobs
    if name not in jobs or (len(jobs) > 1 and not measuring.spec.one_job_at_a_time):
        expected = f"a variant in which {name} runs alone (one_job_at_a_time: true)"
        raise merged.error(here, f"{measuring.variant}{merged.setting}", expected)
    if jobs[name].common_pattern is None:
        found = f"{name} in {measuring.variant}{merged.setting}, whose hosts send differently"
        raise merged.error(here, found, "a job of one symmetric pattern, a host a worker")


def have_equal_other_levels(one: Cell, other: Cell) -> bool:
    """Return True if two cells have the same levels of all factors other than the variant."""
    return {**one.levels, "variant": ""} == {**other.levels, "variant": ""}


def with_dependencies(variant: str, cell: Cell, cells: list[Cell]) -> set[str]:
    """Return `variant` and all its direct and indirect dependencies, at the other levels of `cell`."""
    dependencies = {
        other.variant: other.dependencies.values() for other in cells if have_equal_other_levels(cell, other)
    }
    found: set[str] = set()
    frontier = [variant]
    while frontier:
        name = frontier.pop()
        if name not in found:
            found.add(name)
            frontier.extend(dependencies.get(name, ()))
    return found


class Scope(NamedTuple):
    """The names that expectations may use: factors with their levels, variants, cells, and a check of quantities."""

    factors: dict[str, tuple[str | int | float, ...]]
    variants: tuple[str, ...]
    cells: list[Cell]
    complain: ExpectationCheck | None = None

    def cells_of(self, expectation: Expectation, variant: str | None) -> list[Cell]:
        """Return the cells at the expectation's levels, of `variant` or, if it is None, of all variants."""
        at = (expectation.at or {}).items()
        return [cell for cell in self.cells if variant in (None, cell.variant) and at <= cell.levels.items()]


def check_expectation(merged: Merged, index: int, expectation: Expectation, scope: Scope) -> None:
    """Raise SpecError if expectation `index` names a variant, level, job, quantity or figure that does not exist."""
    here = ("expect", index)
    if expectation.basis is None:
        raise merged.error((*here, "basis"), "nothing", f"one of {list_choices(Basis)}")
    named: list[tuple[tuple[str | int, ...], str | None]] = [(("of",), expectation.of), (("over",), expectation.over)]
    if isinstance(expectation, Order) and expectation.by == "variant":
        named += [(("order", place), name) for place, name in enumerate(expectation.order)]
    for field, variant in named:
        if variant is not None and variant not in scope.variants:
            expected = f"a variant ({list_choices(scope.variants)})"
            raise merged.error((*here, *field), quote_value(variant), expected, suggest(variant, scope.variants))
    for factor, level in (expectation.at or {}).items():
        if factor not in scope.factors:
            hint = suggest(factor, scope.factors)
            raise merged.error((*here, "at", factor), f"'{factor}'", f"a factor ({list_choices(scope.factors)})", hint)
        if level not in scope.factors[factor]:
            expected = f"a level of {factor} ({list_choices(scope.factors[factor])})"
            raise merged.error(
                (*here, "at", factor), quote_value(level), expected, suggest(level, scope.factors[factor])
            )
    _check_cells(merged, index, expectation, scope)


def _check_cells(merged: Merged, index: int, expectation: Expectation, scope: Scope) -> None:
    """Check that the compared cells run, with the job, and that the quantity suits them."""
    for variant in dict.fromkeys((expectation.of, expectation.over or expectation.of)):
        cells = scope.cells_of(expectation, variant)
        if not cells:
            found = f"no trial of {variant} at these levels" if variant else "no trial at these levels"
            raise merged.error(("expect", index), found, "one that is not excluded")
        job = expectation.job
        if job and not any(job in cell.spec.jobs for cell in cells):
            expected = f"a job of {variant or 'the experiment'} ({list_choices(cells[0].spec.jobs)})"
            raise merged.error(("expect", index, "job"), f"'{job}'", expected, suggest(job, cells[0].spec.jobs))
    complaint = scope.complain(expectation, scope.cells_of(expectation, expectation.of)) if scope.complain else None
    if complaint:
        raise merged.error(("expect", index, *complaint.field), complaint.found, complaint.expected, complaint.hint)
