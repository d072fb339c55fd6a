# SPDX-License-Identifier: Apache-2.0
"""Comparison of a fabric's figures with limits. Each verdict names the link or host."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import product

from analysis.statistics.intervals import Measured
from roundabout.checks.acceptance.limits import Limits
from roundabout.checks.check import Verdict, compare
from roundabout.core.verdict_words import NOT_MEASURED
from roundabout.runner.session.connectivity_check import ConnectivityReport
from roundabout.spec.topology import Topology

Pair = tuple[str, str]
"""A path's hosts: sender and receiver."""
Route = Callable[[Pair], Collection[str]]
"""The names of the parts that a path uses."""
ALL = "all hosts"
FEW = 0.2
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
        Verdict(f"host {host}", "mtu_bytes", str(found), f"{usual}, as most hosts have", "fail")
        for host, found in survey.mtu_bytes.items()
        if found != usual
    ]
    lost = {(each.sender, each.receiver): float(each.lost_small) for each in survey.pinged}
    cut = {(each.sender, each.receiver): float(each.lost_large) for each in survey.pinged if not each.lost_small}
    route = by_link(topology)
    rtts = {(each.sender, each.receiver): each.rtt_ms for each in survey.pinged if each.rtt_ms is not None}
    return [
        *(mtus or [Verdict(ALL, "mtu_bytes", str(usual), "the same", "pass")]),
        *_judge_paths(route, "lost", lost, limits),
        *_judge_paths(route, "lost_whole", cut, limits),
        *_judge_paths(route, "rtt_ms", rtts, limits),
    ]


def bandwidth_verdicts(
    route: Route, gbps: Mapping[Pair, float], most_gbps: Mapping[Pair, float], limits: Limits, flows: str
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
    found = _judge_paths(route, "bandwidth", shares, limits, min)
    return [replace(each, found=each.found + words) for each in found]


def latency_verdicts(latency_us: Mapping[Pair, float], limits: Limits) -> list[Verdict]:
    """Return the verdicts on the latency of RDMA writes between hosts."""
    return _judge_paths(by_nic, "write_latency_us", latency_us, limits)


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


def trial_verdicts(records: Collection[Mapping[str, object]]) -> list[Verdict]:
    """Return a verdict for each invalid trial, with the reason in its record."""
    reasons = {(str(each["variant"]), str(each["reason"])): None for each in records if not each["valid"]}
    found = [Verdict(f"trial {variant}", "valid", reason, "a valid trial", "fail") for variant, reason in reasons]
    settled = f"{len(records)} trials, and settings are as set after each"
    return found or [Verdict(ALL, "valid", settled, "valid trials", "pass")]


def find_suspects(route: Route, bad: Iterable[Pair], good: Iterable[Pair]) -> list[str]:
    """Return the parts that all `bad` paths and no `good` path use."""
    ways, fine = [set(route(pair)) for pair in bad], {part for pair in good for part in route(pair)}
    return sorted(set.intersection(*ways) - fine) if ways else []


def by_direction(topology: Topology) -> Route:
    """Return the route whose parts are links, each in one direction."""
    return lambda pair: [f"link {hop.link.name}, {hop.sender} to {hop.receiver}" for hop in topology.path(*pair)]


def by_link(topology: Topology) -> Route:
    """Return the route whose parts are links, each for both of its directions."""
    return lambda pair: [f"link {hop.link.name}" for hop in topology.path(*pair)]


def by_nic(pair: Pair) -> list[str]:
    """Return the parts of a path whose links are unknown: the hosts' NICs, with the links beside them."""
    return [f"NIC of {pair[0]}, sending", f"NIC of {pair[1]}, receiving"]


def _judge_paths(
    route: Route,
    name: str,
    values: Mapping[Pair, float],
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
    blamed = find_suspects(route, bad, values.keys() - set(bad))
    if blamed:
        return [replace(worst, of=each) for each in blamed]
    return [judge_figure(" to ".join(pair), name, _exactly(values[pair]), limits) for pair in bad]


def _counts(name: str) -> tuple[str, ...]:
    return ("two", "many") if name in ("use", "jain", "marked") else ()


def _exactly(value: float | None) -> Measured | None:
    return None if value is None else (value, None)
