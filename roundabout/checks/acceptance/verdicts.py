# SPDX-License-Identifier: Apache-2.0
"""Comparison of a fabric's figures with limits. Each verdict names the link or host."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

from analysis.statistics.intervals import Measured
from roundabout.checks.acceptance.limits import Limits
from roundabout.checks.check import Verdict, compare
from roundabout.core.verdict_words import INCONCLUSIVE, NOT_MEASURED
from roundabout.runner.disturbance.attempt_choice import MAX_REPEATS
from roundabout.runner.session.connectivity_check import ConnectivityReport
from roundabout.spec.topology import Hop, Topology

Pair = tuple[str, str]
"""A path's NICs, by the names of `Topology.nics`: sender and receiver."""
Ends = TypeVar("Ends", bound=tuple[Any, ...])
"""A Pair, or a NicFlow, whose source port determines its path."""
Route = Callable[[Any], Collection[str]]
"""The names of the parts that a path uses, by its Ends."""
Routes = Sequence[Route]
"""Routes of ever coarser parts: of links in one direction, and of links in both, for example."""
ALL = "all hosts"
FEW = 0.2
BY_CHANCE = ("lost", "lost_whole", "resent")  # a path that lost nothing may still cross a lossy link
TCP_ALONE = ("marked_two", "marked_many", "resent")  # counted by the kernel
MAY_BE_MISSING = ("drops", "pauses")  # on unsampled switches or without PFC


def judge_figure(of: str, name: str, measured: Measured | None, limits: Limits, *, by_rdma: bool = False) -> Verdict:
    """Compare a figure with the limits of its name. Figures of flows `by_rdma` that only TCP reports may be missing."""
    least, most = (getattr(limits, f"{bound}_{name}", None) for bound in ("least", "most"))
    verdict = compare(of, name, measured, least=least, most=most, may_be_missing=name in MAY_BE_MISSING)
    if by_rdma and measured is None and name in TCP_ALONE:
        return replace(verdict, found="not measured: only NICs count it of RDMA", verdict=NOT_MEASURED)
    return verdict


def survey_verdicts(topology: Topology, survey: ConnectivityReport, limits: Limits) -> list[Verdict]:
    """Return the verdicts on the connectivity check: MTUs, full-size packets, losses, round trips."""
    usual, _ = Counter(survey.mtu_bytes.values()).most_common(1)[0]
    mtus = [
        Verdict(_nic_of(topology, *nic), "mtu_bytes", str(found), f"{usual}, as most hosts have", "fail")
        for nic, found in survey.mtu_bytes.items()
        if found != usual
    ]
    pinged = {
        (topology.nic_name(each.sender, each.nic), topology.nic_name(each.receiver, each.nic)): each
        for each in survey.pinged
    }
    lost = {pair: float(each.lost_small) for pair, each in pinged.items()}
    cut = {pair: float(each.lost_large) for pair, each in pinged.items() if not each.lost_small}
    rtts = {pair: each.rtt_ms for pair, each in pinged.items() if each.rtt_ms is not None}
    routes = (by_link(topology),)
    return [
        *(mtus or [Verdict(ALL, "mtu_bytes", str(usual), "the same", "pass")]),
        *_judge_paths(routes, "lost", lost, limits),
        *_judge_paths(routes, "lost_whole", cut, limits),
        *_judge_paths(routes, "rtt_ms", rtts, limits),
    ]


def bandwidth_verdicts(
    routes: Routes, gbps: Mapping[Ends, float], most_gbps: Mapping[Ends, float], limits: Limits, flows: str
) -> list[Verdict]:
    """Return the verdicts on what each host sent to each other one, over the line rate less headers, `most_gbps`.

    A figure below its limit names the parts that all slow paths have in common, or else the hosts. `flows` describes
    the flows of a pair, such as their number of queue pairs.
    """
    shares = {pair: rate / most_gbps[pair] for pair, rate in gbps.items()}
    words = ""
    if shares:
        slowest = min(shares, key=shares.__getitem__)
        words = f" of {most_gbps[slowest]:.4g} Gbit/s, the line rate less headers, by {flows}"
    found = _judge_paths(routes, "bandwidth", shares, limits, min)
    return [replace(each, found=each.found + words) for each in found]


def crossing_verdicts(uncrossed: Iterable[Hop], reason: str) -> list[Verdict]:
    """Return a verdict that names the links that no flow crossed, and none if there are none."""
    names = "; ".join(map(_direction, uncrossed))
    return [Verdict(ALL, "crossed", f"not measured: {reason}: {names}", "", NOT_MEASURED)] if names else []


def latency_verdicts(latency_us: Mapping[Pair, float], limits: Limits) -> list[Verdict]:
    """Return the verdicts on the latency of RDMA writes between hosts."""
    return _judge_paths(BY_NIC, "write_latency_us", latency_us, limits)


def weaken(verdicts: Iterable[Verdict], shortage: str | None) -> list[Verdict]:
    """Return the verdicts with failures as inconclusive, if they rest on trials with a `shortage` of CPU time."""
    if not shortage:
        return list(verdicts)
    reason = f"; the CPU was short: {shortage}"
    return [
        replace(each, found=each.found + reason, verdict=INCONCLUSIVE) if each.verdict == "fail" else each
        for each in verdicts
    ]


def judge_with_shortages(
    judge: Callable[[Collection[str]], list[Verdict]], shortages: Mapping[str, str]
) -> list[Verdict]:
    """Return the verdicts on figures of several trials. Those that fail by trials without CPU time are inconclusive.

    `judge` returns the verdicts without the trials of its argument. `shortages` has the signs of the trials that lacked
    CPU time, by trial.
    """
    certain = judge(shortages)
    if not shortages or any(each.verdict == "fail" for each in certain):
        return certain
    return weaken(judge(()), next(iter(shortages.values())))


def counter_verdicts(risen: Mapping[tuple[str, str], int], limits: Limits) -> list[Verdict]:
    """Return the verdicts on counters that must not rise, of which `risen` has the rises by host and counter."""
    found = [
        judge_figure(f"host {host}, {counter}", "risen", (float(rise), None), limits)
        for (host, counter), rise in risen.items()
        if rise
    ]
    names = sorted({counter for _, counter in risen})
    return found or [Verdict(ALL, "risen", f"none of {', '.join(names)}", "none", "pass")]


def link_verdicts(
    links: Mapping[str, tuple[str, str]],
    met: Mapping[str, Mapping[str, float | None]],
    limits: Limits,
    *,
    by_rdma: bool = False,
) -> list[Verdict]:
    """Return the verdicts on flows that shared a link, some of them `by_rdma`.

    `links` has the link and the number of flows (`two`, `many`) of each variant, and `met` the figures of each variant.
    """
    return [
        judge_figure(
            f"link {link}, {flows} flows",
            f"{name}_{flows}" if flows in _counts(name) else name,
            _exactly(value),
            limits,
            by_rdma=by_rdma,
        )
        for variant, (link, flows) in links.items()
        for name, value in met.get(variant, {}).items()
    ]


def unshared_verdicts(links: Collection[str]) -> list[Verdict]:
    """Return a verdict if there are no shared `links`, such as between two hosts."""
    reason = "not measured: no two pairs of NICs meet on a link alone"
    return [] if links else [Verdict(ALL, "use", reason, "", NOT_MEASURED)]


def retransmission_verdicts(
    topology: Topology, resent: Mapping[Pair, tuple[int, int]], limits: Limits, *, by_rdma: bool = False
) -> list[Verdict]:
    """Return the verdicts on retransmitted segments, for the links that the affected host pairs have in common.

    `resent` has the retransmitted and received segments by host pair. A lost acknowledgment can also cause some
    retransmissions. Therefore pairs below a share `FEW` of the worst pair's count are not affected.
    """
    if not resent:
        return [judge_figure(ALL, "resent", None, limits, by_rdma=by_rdma)]
    often = {pair: again / max(came, 1) for pair, (again, came) in resent.items()}
    few = FEW * max(often.values())
    lost = {pair: float(again) if often[pair] > few else 0.0 for pair, (again, _) in resent.items()}
    return _judge_paths(by_direction(topology), "resent", lost, limits)


def class_verdicts(
    topology: Topology, came: Mapping[Pair, Mapping[int, int]], dscp: int, limits: Limits
) -> list[Verdict]:
    """Return the verdicts on the DSCPs of captured packets, of which `came` has counts by host pair and DSCP."""
    wrong = {pair: float(sum(counts.values()) - counts.get(dscp, 0)) for pair, counts in came.items()}
    found = _judge_paths(by_direction(topology), "wrong_class", wrong, limits)
    others = sorted({other for counts in came.values() for other in counts} - {dscp})
    words = f" with DSCP {', '.join(map(str, others))}, expected {dscp}" if others else f", all with DSCP {dscp}"
    return [replace(each, found=f"{each.found}{words}, by captured packets") for each in found]


def priority_verdicts(
    hosts: Iterable[str],
    counted: Mapping[tuple[str, str], Counter[int]],
    priorities: Collection[int],
    limits: Limits,
) -> list[Verdict]:
    """Return the verdicts on the priorities of the packets that NICs sent and received, for RDMA that is not captured.

    `counted` has the packets by priority of each host and side (rx or tx), and `priorities` those of jobs and CNPs.
    """
    found = []
    for host, side in product(hosts, ("tx", "rx")):
        counts = counted.get((host, side), Counter())
        other = counts.total() - sum(counts[each] for each in priorities)
        share = other / counts.total() if counts else None
        verdict = judge_figure(f"host {host}, {side}", "other_priorities", _exactly(share), limits)
        words = f" of {counts.total()} packets, by the NIC's counters, as RDMA is not captured"
        found.append(replace(verdict, found=verdict.found + words))
    return found


def tcp_class_verdict(counted: Mapping[tuple[str, str], Counter[int]]) -> Verdict:
    """Return the verdict on the class of TCP in a rack's NICs. It claims none. `counted` is as in `priority_verdicts`.

    mlx5 sends all TCP in priority 0 (docs/reference/rack/changes.md).
    """
    sent = sum((counts for (_, side), counts in counted.items() if side == "tx"), Counter[int]())
    share = f"{sent[0] / sent.total():.0%} of the sent packets counted there" if sent else "NICs do not count it"
    reason = f"not measured: mlx5 sends TCP in priority 0 ({share}), which PFC of the jobs' priority does not pause"
    return Verdict(ALL, "nic_class", reason, "", NOT_MEASURED)


def job_verdicts(slowdowns: Mapping[str, Measured], limits: Limits) -> list[Verdict]:
    """Return the verdicts on the standard job's slowdown by each congestor."""
    return [judge_figure("the job", f"slowdown_{name}", each, limits) for name, each in slowdowns.items()]


def trial_verdicts(records: Collection[Mapping[str, Any]], shortages: Mapping[str, str]) -> list[Verdict]:
    """Return the verdicts on invalid trials, with the reasons in their records.

    `shortages` has the signs of the trials that lacked CPU time, by trial. Invalid ones of these are inconclusive, or
    not measured if their variant has a valid repetition, whose figures count.
    """
    invalid = [each for each in records if not each["valid"]]
    reasons = {(each["variant"], each["reason"]): None for each in invalid if each["trial"] not in shortages}
    found = [Verdict(f"trial {variant}", "valid", reason, "a valid trial", "fail") for variant, reason in reasons]
    short = defaultdict[str, list[str]](list)
    for each in invalid:
        if signs := shortages.get(each["trial"]):
            short[each["variant"]].append(signs if each["reason"] in signs else f"{signs}; {each['reason']}")
    repeated = {each["variant"] for each in records if each["valid"]}
    found += [_short_trials(variant, signs, is_repeated=variant in repeated) for variant, signs in short.items()]
    settled = f"{len(records)} trials, and settings are as set after each"
    return found or [Verdict(ALL, "valid", settled, "valid trials", "pass")]


def _short_trials(variant: str, signs: Sequence[str], *, is_repeated: bool) -> Verdict:
    """Return the verdict on the trials of a variant that lacked CPU time in all attempts."""
    counted = "" if len(signs) == 1 else f", in {len(signs)} trials"
    found = f"the CPU was short: {signs[0]}{counted}, in each of {1 + MAX_REPEATS} attempts"
    word = NOT_MEASURED if is_repeated else INCONCLUSIVE
    return Verdict(f"trial {variant}", "valid", found, "a valid trial", word)


def find_suspects(route: Route, bad: Iterable[Ends], good: Iterable[Ends]) -> list[str]:
    """Return the parts that all `bad` paths and no `good` path use."""
    ways, fine = [set(route(pair)) for pair in bad], {part for pair in good for part in route(pair)}
    return sorted(set.intersection(*ways) - fine) if ways else []


def by_direction(topology: Topology) -> Routes:
    """Return the routes whose parts are links, each in one direction, or else in both."""

    def directions(ends: tuple[Any, ...]) -> list[str]:
        return [_direction(hop) for hop in _path(topology, ends)]

    return directions, by_link(topology)


def by_link(topology: Topology) -> Route:
    """Return the route whose parts are links, each for both of its directions."""
    return lambda ends: [f"link {hop.link.name}" for hop in _path(topology, ends)]


def _direction(hop: Hop) -> str:
    return f"link {hop.link.name}, {hop.sender} to {hop.receiver}"


def _path(topology: Topology, ends: tuple[Any, ...]) -> tuple[Hop, ...]:
    """Return the path between two NICs, or none if one is unknown, such as that of a captured address."""
    return topology.nic_path(*ends) if topology.nics.keys() >= set(ends[:2]) else ()


def _nic_of(topology: Topology, host: str, number: int) -> str:
    name = topology.nic_name(host, number)
    return f"host {host}" if name == host else f"host {host}, NIC {number}"


BY_NIC: Routes = (
    lambda pair: [f"NIC of {pair[0]}, sending", f"NIC of {pair[1]}, receiving"],
    lambda pair: [f"NIC of {each}" for each in pair],
)
"""The routes of paths whose links are unknown. Their parts are the hosts' NICs, with the links beside them."""


def _judge_paths(
    routes: Routes,
    name: str,
    values: Mapping[Ends, float],
    limits: Limits,
    worst_of: Callable[[Iterable[float]], float] = max,
) -> list[Verdict]:
    """Judge the worst figure of all paths between hosts; if it is beyond its limit, judge the links to blame for it."""
    if not values:
        return [judge_figure(ALL, name, None, limits)]
    worst = judge_figure(ALL, name, _exactly(worst_of(values.values())), limits)
    bad = [pair for pair, value in values.items() if judge_figure("", name, _exactly(value), limits).verdict == "fail"]
    if not bad:
        return [worst]
    for route in routes:
        if blamed := find_suspects(route, bad, values.keys() - set(bad)):
            return [replace(worst, of=each) for each in blamed]
    if name in BY_CHANCE and len(bad) > 1 and len(shared := find_suspects(routes[-1], bad, ())) == 1:
        crossing = sum(shared[0] in routes[-1](pair) for pair in values)
        return [replace(worst, of=shared[0], found=f"{worst.found}, on {len(bad)} of {crossing} paths over it")]
    return [judge_figure(" to ".join(pair[:2]), name, _exactly(values[pair]), limits) for pair in bad]


def _counts(name: str) -> tuple[str, ...]:
    return ("two", "many") if name in ("use", "jain", "marked") else ()


def _exactly(value: float | None) -> Measured | None:
    return None if value is None else (value, None)
