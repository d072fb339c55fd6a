# SPDX-License-Identifier: Apache-2.0
"""htsim's connection matrices (`.cm`) and fat trees of two or three tiers (`.topo`).

Source of the formats: sim/datacenter/connection_matrix.cpp and fat_tree_topology.cpp of Broadcom/csg-htsim (revision
841d9e7) and ultraethernet/uet-htsim (40ccb05).
"""

from collections import Counter
from collections.abc import Collection, Container
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from roundabout.spec.errors import SpecError, expected_names, quote_value, shorten
from roundabout.spec.flow_readers.lines import (
    INSTANT_NICS,
    MAX_FLOW_BYTES,
    MAX_NODES,
    FlowList,
    Line,
    ListedFlow,
    check_ends,
    drop_comments,
)
from roundabout.spec.reader.yaml_source import shown_path

PS_PER_MS = 10**9
MAX_START_PS = 10**15  # limit of starts, 1000 s
COUNTS = ("Nodes", "Connections", "Triggers", "Failures")
FLOW_FIELDS = ("start", "size", "id", "prio")
REFUSED = {
    "trigger": "a start: flows that begin when others end are not played",
    "send_done_trigger": "no trigger: flows that begin when others end are not played",
    "recv_done_trigger": "no trigger: flows that begin when others end are not played",
    "msg": "a flow in each line: messages of one connection are not played",
    "addon": "no trigger: flows that begin when others end are not played",
}
TIERS = ("tor", "agg", "core")
NAMED_ONCE = ("nodes", "tiers", "podsize")
MAX_GBPS, MAX_NS, MAX_QUEUE_BYTES = 100_000, 10**9, 10**12


def read_flows(path: Path, lines: list[Line]) -> FlowList:
    """Return the flows of a connection matrix. Raises SpecError for the file's first fault."""
    counts: dict[str, int] = {}
    flows: list[ListedFlow] = []
    ids: dict[str, int] = {}
    fields: Counter[str] = Counter()
    for line in drop_comments(lines):
        if "->" in line.words[0]:
            values = _flow_fields(line)
            _check_id(line, values.get("id"), ids)
            fields.update(values.keys())
            flows.append(_flow(line, values, counts.get("Nodes", 0)))
        elif line.words[0] in COUNTS and not flows:
            if line.words[0] in counts:
                raise line.error(line.words[0], "it twice", "each line of counts once")
            counts[line.words[0]] = _only_number(line, line.words[0])
        else:
            expected = f"a flow, as 0->13 start 0 size 2000000, or before all flows one of {', '.join(COUNTS)}"
            raise line.error("", quote_value(shorten(line.words[0])), expected)
    _check_counts(path, counts, len(flows))
    unused = [f"prio of {fields['prio']} flows: all flows have one priority"] if fields["prio"] else []
    return FlowList(tuple(flows), tuple(unused), counts["Nodes"])


def _only_number(line: Line, field: str, least: int = 0, most: int = MAX_NODES) -> int:
    """Return the number after the name of a field, a line's first word."""
    if len(line.words) != 2:
        raise line.error(field, f"{len(line.words) - 1} values", "one number")
    return line.whole(field, line.words[1], least, most)


def _check_counts(path: Path, counts: dict[str, int], found: int) -> None:
    for name in COUNTS[:2]:
        if name not in counts:
            raise SpecError(shown_path(path), "no such line", f"{name} and a number", field=name)
    if counts["Connections"] != found:
        expected = f"{counts['Connections']}, as the file says"
        raise SpecError(
            shown_path(path), f"{found} flows", expected, field="Connections", hint="the file may be cut off"
        )
    if not found:
        raise SpecError(shown_path(path), "no flows", "one at least", field="Connections")
    for name in COUNTS[2:]:
        if counts.get(name):
            raise SpecError(shown_path(path), str(counts[name]), "0: they are not played", field=name)


def _flow_fields(line: Line) -> dict[str, str]:
    """Return the fields of a flow by name. Raises SpecError for unknown ones, and for those that cannot be played."""
    values: dict[str, str] = {}
    words = iter(line.words[1:])
    for name in words:
        if name in REFUSED:
            raise line.error(name, quote_value(" ".join(line.words)), REFUSED[name])
        _check_name(line, "flow", name, FLOW_FIELDS, values)
        values[name] = next(words, "")
    return values


def _check_name(line: Line, field: str, name: str, known: Collection[str], values: Container[str]) -> None:
    """Raise SpecError unless a field's name is known and not among `values` yet."""
    if name in values:
        raise line.error(field, f"{quote_value(name)} twice", "each field once")
    if name not in known:
        expected, hint = expected_names(name, known)
        raise line.error(field, quote_value(shorten(name)), expected, hint)


def _check_id(line: Line, number: str | None, ids: dict[str, int]) -> None:
    """Raise SpecError if an earlier line has the same id."""
    if number is None:
        return
    line.whole("id", number, 1, 2**32)
    if number in ids:
        expected = "each id once: messages of one connection are not played"
        raise line.error("id", f"{number}, as in line {ids[number]}", expected)
    ids[number] = line.number


def _flow(line: Line, values: dict[str, str], nodes: int) -> ListedFlow:
    ends = line.words[0].split("->")
    if len(ends) != 2:
        raise line.error("flow", quote_value(shorten(line.words[0])), "two hosts, as 0->13")
    if not nodes:
        raise line.error("flow", "no line Nodes before it", "the number of hosts first")
    sender, receiver = (line.whole("flow", end, 0, nodes - 1) for end in ends)
    check_ends(line, sender, receiver)
    for name in ("start", "size"):
        if name not in values:
            raise line.error(name, "nothing", "a start in ps, and a size in bytes")
    size = line.whole("size", values["size"], 1, MAX_FLOW_BYTES)
    start_ps = line.whole("start", values["start"], 0, MAX_START_PS)
    return ListedFlow(sender, receiver, size, start_ps / PS_PER_MS, line)


class _Tier(NamedTuple):
    """Fields of a tier, and the line of its heading."""

    line: Line
    values: dict[str, int]

    def get(self, field: str) -> int:
        """Return a field. Raises SpecError if the tier lacks it."""
        if field not in self.values:
            raise self.line.error(field, f"nothing in tier {self.line.words[-1]}", "it in this tier")
        return self.values[field]


OPTIONAL = {"bundle": 1, "oversubscribed": 1, "switch_latency_ns": 0}
LIMITS = {
    "downlink_speed_gbps": (1, MAX_GBPS),
    "radix_up": (1, 4096),
    "radix_down": (1, 4096),
    "queue_up": (1, MAX_QUEUE_BYTES),
    "queue_down": (1, MAX_QUEUE_BYTES),
    "oversubscribed": (1, 4096),
    "bundle": (1, 4096),
    "switch_latency_ns": (0, MAX_NS),
    "downlink_latency_ns": (0, MAX_NS),
}


def read_topology(path: Path, lines: list[Line]) -> tuple[dict[str, Any], list[Line | None], tuple[str, ...]]:
    """Return the fields of a topology from a `.topo` file, None for each link's line, and what is not used.

    Raises SpecError for the file's first fault.
    """
    counts, pod_line, tiers = _sections(path, lines)
    hosts, pod = counts["nodes"], counts["podsize"]
    latencies = {each.values["switch_latency_ns"] for each in tiers}
    if len(latencies) > 1:
        found = " and ".join(f"{each} ns" for each in sorted(latencies))
        raise tiers[-1].line.error("switch_latency_ns", found, "one value for all tiers: a topology has one")
    _check_pods(pod_line, tiers, hosts, pod)
    _check_radices(tiers, hosts, pod)
    links = _links(tiers, hosts, pod)
    switches = dict.fromkeys(end for link in links for end in link["ends"] if not end.startswith("h"))
    fields = {
        "hosts": [f"h{number}" for number in range(hosts)],
        "switches": list(switches),
        "links": links,
        "delays": {"switch_us": latencies.pop() / 1e3, **INSTANT_NICS},
    }
    queues = sorted({name for each in tiers for name in each.values if name.startswith("queue")})
    unused = [f"{name}: whether ports drop, trim or pause is an option of htsim's program" for name in queues]
    return fields, [None] * len(links), tuple(unused)


def _sections(path: Path, lines: list[Line]) -> tuple[dict[str, int], Line, list[_Tier]]:
    """Return the fields above the tiers, the line of the pods' size, and the tiers from the hosts up."""
    counts: dict[str, int] = {}
    tiers: dict[int, _Tier] = {}
    values: dict[str, int] = counts
    for line in drop_comments(lines):
        name = line.words[0].lower()
        if name == "tier":
            number = line.whole("tier", line.words[-1], 0, len(TIERS) - 1)
            if number in tiers:
                raise line.error("tier", f"{number} twice", "each tier once")
            values = {}
            tiers[number] = _Tier(line, values)
            continue
        allowed = LIMITS if tiers else dict.fromkeys(NAMED_ONCE, (1, 100_000))
        if name == "failed_links":
            raise line.error(name, quote_value(" ".join(line.words[1:])), "no such line: failed links are not played")
        _check_name(line, "", name, allowed, values)
        values[name] = _only_number(line, name, *allowed[name])
    for name in NAMED_ONCE:
        if name not in counts:
            raise SpecError(shown_path(path), "no such line", f"{name} and a number before the tiers", field=name)
    if sorted(tiers) != list(range(counts["tiers"])) or counts["tiers"] < 2:
        found = ", ".join(map(str, sorted(tiers))) or "none"
        raise SpecError(shown_path(path), f"{found} of {counts['tiers']}", "2 or 3 tiers, from 0", field="tiers")
    pod_line = next(line for line in lines if line.words[0].lower() == "podsize")
    return (
        counts,
        pod_line,
        [tiers[number]._replace(values=OPTIONAL | tiers[number].values) for number in sorted(tiers)],
    )


def _check_pods(line: Line, tiers: list[_Tier], hosts: int, pod: int) -> None:
    """Raise SpecError unless pods divide the hosts, and switches of tier 0 a pod."""
    below = tiers[0].get("radix_down")
    if hosts % pod:
        raise line.error("podsize", str(pod), f"a divisor of the {hosts} nodes")
    if pod % below:
        raise line.error("podsize", str(pod), f"a multiple of tier 0's radix_down of {below}")
    if len(tiers) == 2 and pod != hosts:
        raise line.error("podsize", str(pod), f"{hosts}, all nodes, with two tiers")


def _check_radices(tiers: list[_Tier], hosts: int, pod: int) -> None:
    """Raise SpecError unless the radices of neighboring tiers fit, and say the oversubscription that the file says."""
    top = tiers[-1]
    if "radix_up" in top.values:
        raise top.line.error("radix_up", str(top.values["radix_up"]), "none in the top tier")
    reached = [
        pod // tiers[0].get("radix_down"),
        hosts // pod,
    ]  # switches below a switch of tier 1, and pods below one of tier 2
    for lower, upper, switches in zip(tiers, tiers[1:], reached, strict=False):
        up, down, bundle = lower.get("radix_up"), upper.get("radix_down"), upper.values["bundle"]
        if up % bundle:
            raise upper.line.error("bundle", str(bundle), f"a divisor of the radix_up of {up} below")
        if down != switches * bundle:
            expected = f"{switches * bundle}: {switches} below, by {bundle} links each"
            raise upper.line.error("radix_down", str(down), expected)
        ratio, oversubscribed = lower.get("radix_down") // up, lower.values["oversubscribed"]
        if max(ratio, 1) != oversubscribed:
            expected = f"{max(ratio, 1)}, radix_down over radix_up"
            raise lower.line.error("oversubscribed", str(oversubscribed), expected)


def _links(tiers: list[_Tier], hosts: int, pod: int) -> list[dict[str, Any]]:
    """Return all links, from the hosts up. Tier 2 has as many switches for each place of a pod."""
    below = tiers[0].get("radix_down")
    tors, pods = pod // below, hosts // pod
    aggs = tiers[0].get("radix_up") // tiers[1].values["bundle"]
    links = [_link(f"h{host}", f"tor{host // below}", tiers[0]) for host in range(hosts)]
    for tor in range(tors * pods):
        links += _bundle(f"tor{tor}", [f"agg{tor // tors * aggs + place}" for place in range(aggs)], tiers[1])
    if len(tiers) == 2:
        return links
    cores = tiers[1].get("radix_up") // tiers[2].values["bundle"]
    for agg in range(aggs * pods):
        links += _bundle(f"agg{agg}", [f"core{agg % aggs * cores + place}" for place in range(cores)], tiers[2])
    return links


def _bundle(lower: str, uppers: list[str], tier: _Tier) -> list[dict[str, Any]]:
    bundle = range(tier.values["bundle"])
    numbers = count()
    return [
        _link(lower, upper, tier, f"-{next(numbers)}" if len(bundle) > 1 else "") for upper in uppers for _ in bundle
    ]


def _link(lower: str, upper: str, tier: _Tier, suffix: str = "") -> dict[str, Any]:
    return {
        "name": f"{lower}-{upper}{suffix}",
        "ends": [lower, upper],
        "line_rate_gbps": float(tier.get("downlink_speed_gbps")),
        "delay_us": tier.get("downlink_latency_ns") / 1e3,
    }
