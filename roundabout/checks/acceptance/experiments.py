# SPDX-License-Identifier: Apache-2.0
"""Experiments of an acceptance test over any topology: flows through each shared link, and a job beside congestors.

Rates follow from the topology's. Durations, counts and sizes are our choice: together they take a lab less than five
minutes. Limits state the expected figures.
"""

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, cycle, permutations
from typing import NamedTuple

from roundabout.core.disjoint_rounds import disjoint_rounds
from roundabout.core.errors import UsageError
from roundabout.spec.capture import Capture
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.experiment import Cell, Experiment
from roundabout.spec.job import ResolvedJob
from roundabout.spec.patterns import Pattern
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.routing import FIRST_PORT, FlowPort
from roundabout.spec.study_choice import StudyChoice
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec

FLOWS = {"two": 2, "many": 4}  # number of flows through a link in each direction
LASTS_MS = 3000.0  # duration of flows
PART_MS, PARTS = 125.0, 8  # sending times of a flow that is alone on its links, of which the best counts
TURN_MS = 60.0  # sending time, on an idle link, after which a flow waits for its peer
CLASSES = "classes"
STANDARD = "standard"
OWN_DSCP = 26  # DSCP of packets without an inventory: RoCE's, as in docs/reference/rack/changes.md
IDLE, CONGESTORS = "idle", ("iperf", "consistent", "burst", "job")
HALF_MS = 100.0  # computing time, and sending time on an idle network, of the standard job
DEMAND, LOAD = 0.9, 0.3  # rates of the sending job and of a congestor, as shares of the link's payload rate
ITERATIONS, REPETITIONS = 10, 4  # a confidence interval needs four repetitions
PROBED_PORTS = range(FIRST_PORT, FIRST_PORT + 1024)  # with 64 paths, 1,024 ports miss one with a probability of 1e-7

Pair = tuple[str, str]
"""Two NICs of different hosts, by the names of `Topology.nics`: sender and receiver."""
Pairs = tuple[Pair, Pair]


class NicFlow(NamedTuple):
    """A flow from one NIC to another, by the names of `Topology.nics`. Its source port determines its path."""

    sender: str
    receiver: str
    port: int = FIRST_PORT


def shared_links(topology: Topology) -> dict[str, Pairs]:
    """Return two pairs of NICs for each link that is the only link that both pairs use.

    A fault between these NICs is therefore a fault of the link. Links that all paths use together, such as those of a
    spine with two switches, count as one.
    """
    pairs = [*_of_rails(topology, combinations(topology.nics, 2)), *_cross_pairs(topology)]
    crossed = {pair: {hop.link.name for hop in topology.nic_path(*pair)} for pair in pairs}
    found: dict[str, Pairs] = {}
    for link in topology.links:
        through = [pair for pair, links in crossed.items() if link.name in links]
        together = set.intersection(*(crossed[pair] for pair in through)) if through else set()
        shared = (each for each in combinations(through, 2) if crossed[each[0]] & crossed[each[1]] <= together)
        if pairs_of_link := next(shared, None):
            found[link.name] = pairs_of_link
    return found


def _of_rails(topology: Topology, pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs of NICs of the same number: those of a rail, or all without rails."""
    return [(one, other) for one, other in pairs if topology.nics[one][1] == topology.nics[other][1]]


def _cross_pairs(topology: Topology) -> list[Pair]:
    """Return the pairs of NICs of different hosts and rails. With PXN no flow goes from one rail to another."""
    nics = {} if topology.crosses_nvlink else topology.nics
    return [pair for pair in combinations(nics, 2) if all(map(operator.ne, *(nics[each] for each in pair)))]


def bandwidth_flows(topology: Topology) -> dict[str, list[NicFlow]]:
    """Return the flows of each variant of `bandwidth_experiment`. Those of a variant share no link.

    There is one for each ordered pair of NICs of a rail. Further ones add a link: those between rails, and those with
    another source port, which take another path.
    """
    flows = [NicFlow(*pair) for pair in _of_rails(topology, permutations(topology.nics, 2))]
    crossed = {hop for flow in flows for hop in topology.nic_path(*flow)}
    for pair in (each for found in _cross_pairs(topology) for each in (found, found[::-1])):
        if not crossed.issuperset(path := topology.nic_path(*pair)):
            flows.append(NicFlow(*pair))
            crossed.update(path)
    flows += _flows_by_other_paths(topology, flows, crossed)
    rounds = disjoint_rounds(flows, lambda flow: {hop.link.name for hop in topology.nic_path(*flow)})
    return {f"round-{number}": found for number, found in enumerate(rounds, 1)}


def _flows_by_other_paths(topology: Topology, flows: Sequence[NicFlow], crossed: set[Hop]) -> Iterator[NicFlow]:
    """Yield flows with other source ports that cross hops that are not in `crossed`, and add these hops to it."""
    alike: dict[tuple[str, str], list[NicFlow]] = defaultdict(list)
    for flow in flows if topology.hashes_flows else ():
        first, *_, last = topology.nic_path(*flow)
        alike[first.receiver, last.sender].append(flow)
    for (switch, other), own in alike.items():
        for port, flow in zip(PROBED_PORTS, cycle(own)):
            if crossed >= topology.hops_between(switch, other):
                break
            another = flow._replace(port=port)
            if not crossed.issuperset(path := topology.nic_path(*another)):
                crossed.update(path)
                yield another


def uncrossed_hops(topology: Topology) -> list[Hop]:
    """Return the links, each in one direction, that no flow of `bandwidth_experiment` crosses."""
    flows = (flow for found in bandwidth_flows(topology).values() for flow in found)
    crossed = {hop for flow in flows for hop in topology.nic_path(*flow)}
    every = (Hop(link, *ends) for link in topology.links for ends in (link.ends, link.ends[::-1]))
    return [hop for hop in every if hop not in crossed]


def payload_gbps(topology: Topology, flow: Pair | NicFlow) -> float:
    """Return the lowest payload rate on the path of a flow from one NIC to another, in Gbit/s."""
    return min(hop.link.payload_rate_gbps for hop in topology.nic_path(*flow))


def flow_name(flow: NicFlow) -> str:
    """Return the name of the job that sends a flow."""
    port = "" if flow.port == FIRST_PORT else f"-port-{flow.port}"
    return f"{flow.sender}-to-{flow.receiver}{port}"


def bandwidth_experiment(topology: Topology) -> Experiment:
    """Return the experiment in which each NIC sends to each other one, with no other flow on the same links.

    Flows are of CUBIC, which fills a link that it has for itself, so that they measure links and not a transport.
    """
    trials, transport = {}, Transport(name="cubic")
    for variant, flows in bandwidth_flows(topology).items():
        jobs = {
            flow_name(flow): make_nic_job(topology, flow[:2], _one_way(topology, flow), transport, flow.port)
            for flow in flows
        }
        trials[variant] = make_trial(topology, jobs, iterations=PARTS)
    return make_experiment("acceptance-bandwidth", trials, repetitions=1)


def _one_way(topology: Topology, flow: NicFlow) -> Profile:
    return make_profile("one-way", 1.0, PART_MS, payload_gbps(topology, flow), "pipeline")


def link_variants(topology: Topology) -> dict[str, tuple[str, str]]:
    """Return the link and the number of flows (`two`, `many`) of each variant of `link_experiment`."""
    return {f"{link}-{word}": (link, word) for link in shared_links(topology) for word in FLOWS}


def link_experiment(topology: Topology, transport: Transport, dscp: int | None = None) -> Experiment:
    """Return the experiment with two and many flows through each shared link, and captured flows among all hosts.

    `dscp` is the DSCP of the captured flows, or None if the inventory defines it.
    """
    roomy = topology.model_copy(update={"gpus_per_host": max(FLOWS.values())})  # a host has an end of several flows
    by_name, pairs = {link.name: link for link in roomy.links}, shared_links(topology)
    trials = {
        variant: _flows(roomy, by_name[name], pairs[name], FLOWS[word], transport)
        for variant, (name, word) in link_variants(topology).items()
    }
    return make_experiment("acceptance-links", {CLASSES: _all_to_all(roomy, transport, dscp), **trials}, repetitions=1)


def job_experiment(topology: Topology, transport: Transport) -> Experiment:
    """Return the experiment with the standard job over the most shared link, alone and beside each congestor."""
    own, others = job_pairs(topology)
    rate_gbps = payload_gbps(topology, own)
    job = make_nic_job(topology, own, make_profile(STANDARD, HALF_MS, HALF_MS, DEMAND * rate_gbps), transport)
    hosts = [topology.nics[name][0] for name in others]
    rail = topology.nics[others[0]][1]
    trials = {IDLE: make_trial(topology, {STANDARD: job})}
    for kind in CONGESTORS:
        if kind == "job":
            rival = make_nic_job(topology, others, job.profile, transport)
            trials[kind] = make_trial(topology, {STANDARD: job, "rival": rival})
        else:
            load_gbps = LOAD * payload_gbps(topology, others)
            cross = CrossTraffic.model_validate(
                {"kind": kind, "from": hosts[0], "to": hosts[1:], "load_gbps": load_gbps, "rail": rail}
            )
            trials[kind] = make_trial(topology, {STANDARD: job}, {"cross": cross})
    return make_experiment("acceptance-job", trials, REPETITIONS)


def job_pairs(topology: Topology) -> Pairs:
    """Return the NICs of the job, and those of the traffic beside it, which are of one rail.

    They share the bottleneck, or else the first link that fits. Raises UsageError if none does, such as between two
    hosts with one NIC each.
    """
    fit: dict[str, Pairs] = {}
    for name, pairs in shared_links(topology).items():
        for own, others in (pairs, pairs[::-1]):
            if len({topology.nics[nic][1] for nic in others}) == 1:
                fit.setdefault(name, (own, others))
    if not fit:
        raise UsageError(
            f"topology {topology.name}: found no link where two pairs of NICs meet alone, expected one for the job and "
            "the traffic beside it",
            "leave the job out: --only paths --only bandwidth --only links",
        )
    return fit.get(topology.bottleneck.name) or next(iter(fit.values()))


def _flows(topology: Topology, link: Link, pairs: Pairs, flows: int, transport: Transport) -> TrialSpec:
    """Return a trial whose flows are jobs that only send, so that each always has data to send."""
    profile = make_profile("steady", 1.0, TURN_MS, link.payload_rate_gbps)
    jobs = {
        f"f{number + 1}": make_nic_job(topology, pairs[number % 2], profile, transport).model_copy(
            update={"departs_ms": LASTS_MS}
        )
        for number in range(flows)
    }
    return make_trial(topology, jobs, iterations=round(LASTS_MS / TURN_MS))


def _all_to_all(topology: Topology, transport: Transport, dscp: int | None) -> TrialSpec:
    """Return a trial in which all NICs send to each other, so that a faulty path shows by comparison."""
    slowest_gbps = min(link.payload_rate_gbps for link in topology.links)
    profile = make_profile("everybody", HALF_MS, TURN_MS, slowest_gbps, "all-to-all")
    capture = Capture(hosts=topology.hosts, snap_bytes=64, budget_mb=10)
    job = make_nic_job(topology, list(topology.nics), profile, transport).model_copy(update={"priority": dscp})
    return make_trial(topology, {"everybody": job}).model_copy(update={"capture": capture})


def make_profile(name: str, compute_ms: float, alone_ms: float, gbps: float, pattern: Pattern = "pairs") -> Profile:
    """Return a profile that computes, and then sends by `pattern` what `gbps` carries in `alone_ms`."""
    guess = "no model; our choice, see the module"
    computing = Phase(name="compute", compute_ms=compute_ms, guess=guess)
    size = round(gbps * alone_ms * 1e6 / 8)
    sending = Phase(name="send", bytes=size, alone_ms=alone_ms, pattern=pattern, guess=guess)
    return Profile(name=name, model="none", source="ours", phases=(computing, sending))


def make_job(workers: tuple[str, ...], profile: Profile, transport: Transport) -> ResolvedJob:
    """Return a job of these workers."""
    return ResolvedJob(profile=profile, workers=workers, transport=transport)


def make_nic_job(
    topology: Topology, nics: Sequence[str], profile: Profile, transport: Transport, port: int = FIRST_PORT
) -> ResolvedJob:
    """Return a job with a worker at each of these NICs. All of its flows have the paths that `port` gives to a flow."""
    places = [topology.nics[name] for name in nics]
    job = make_job(tuple(host for host, _ in places), profile, transport)
    if not topology.hashes_flows:
        return job
    ports = [
        FlowPort(sender=each.sender, receiver=each.receiver, number=0, port=port)
        for each in job.transfers(profile.phases[-1])
    ]
    gpus = tuple(number for _, number in places) if topology.has_rails else ()
    return job.model_copy(update={"source_ports": tuple(ports), "gpus": gpus})


def make_trial(
    topology: Topology,
    jobs: Mapping[str, ResolvedJob],
    cross_traffic: Mapping[str, CrossTraffic] | None = None,
    iterations: int = ITERATIONS,
) -> TrialSpec:
    """Return the trial of these jobs and this cross traffic."""
    return TrialSpec(topology=topology, jobs=dict(jobs), cross_traffic=dict(cross_traffic or {}), iterations=iterations)


def make_experiment(name: str, trials: Mapping[str, TrialSpec], repetitions: int) -> Experiment:
    """Return the experiment whose variants are `trials`."""
    return Experiment(
        name=name,
        about="What `roundabout acceptance` runs",
        study=StudyChoice(kind="levels", baseline=next(iter(trials))),
        repetitions=repetitions,
        factors={"variant": tuple(trials)},
        cells=tuple(Cell(levels={"variant": each}, spec=spec) for each, spec in trials.items()),
        document={},
    )
