# SPDX-License-Identifier: Apache-2.0
"""Topologies and flow lists of HPCC's ns-3 (`mix/topology.txt`, `mix/flow.txt`).

Source of the formats: simulation/scratch/third.cc and traffic_gen/README.md of
alibaba-edu/High-Precision-Congestion-Control (revision 9f4be2a).
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from roundabout.spec.errors import SpecError, quote_value, shorten
from roundabout.spec.flow_readers.lines import (
    INSTANT_NICS,
    MAX_FLOW_BYTES,
    FlowList,
    Line,
    ListedFlow,
    check_ends,
)
from roundabout.spec.reader.yaml_source import shown_path

MAX_START_S = 1e6
FLOW_COLUMNS = ("sender", "receiver", "priority group", "port", "bytes", "start in s")
LINK_COLUMNS = ("node", "node", "rate", "delay", "error rate")
GBPS = {"bps": 1e-9, "kbps": 1e-6, "Kbps": 1e-6, "Mbps": 1e-3, "Gbps": 1.0}  # GBps is bytes, and refused
US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3, "ps": 1e-6}


def read_flows(path: Path, lines: list[Line]) -> FlowList:
    """Return the flows of a flow list, as many as its first line says, with the first one's start as 0.

    Raises SpecError for the file's first fault.
    """
    first, *rows = lines
    (word,) = _columns(first, ("number of flows",))
    number = first.whole("number of flows", word, 1)
    _check_rows(path, rows, number, "flows")
    flows = [_flow(line) for line in rows[:number]]
    groups = {line.words[2] for line in rows[:number]}
    unused = ["ports: another hash chooses paths"]
    if len(rows) > number:
        unused.append(f"{len(rows) - number} further lines: HPCC's program reads {number} flows, too")
    if len(groups) > 1:
        unused.append(f"priority groups {', '.join(sorted(groups))}: all flows have one priority")
    for earlier, later in pairwise(flows):
        if later.start_ms < earlier.start_ms:
            raise later.line.error("start in s", later.line.words[5], f"no earlier than {earlier.line.words[5]} above")
    if flows[0].start_ms:
        unused.append(f"the {flows[0].start_ms / 1e3:g} s before the first flow")
    begins_ms = flows[0].start_ms
    return FlowList(tuple(each._replace(start_ms=each.start_ms - begins_ms) for each in flows), tuple(unused))


def _columns(line: Line, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a line. Raises SpecError unless there is one for each name."""
    if len(line.words) != len(names):
        raise line.error("", f"{len(line.words)} values", f"{len(names)}: {', '.join(names)}")
    return line.words


def _check_rows(path: Path, rows: list[Line], number: int, what: str) -> None:
    if len(rows) < number:
        expected = f"{number} {what}, as the first line says"
        raise SpecError(shown_path(path), f"{len(rows)}", expected, hint="the file may be cut off")


def _flow(line: Line) -> ListedFlow:
    sender, receiver, group, port, size, start_s = _columns(line, FLOW_COLUMNS)
    ends = line.whole("sender", sender), line.whole("receiver", receiver)
    check_ends(line, *ends)
    line.whole("priority group", group, 0, 7)
    line.whole("port", port, 0, 65_535)
    start_ms = 1e3 * line.number_of("start in s", start_s, "seconds", MAX_START_S)
    return ListedFlow(*ends, line.whole("bytes", size, 1, MAX_FLOW_BYTES), start_ms, line)


def read_topology(path: Path, lines: list[Line]) -> tuple[dict[str, Any], list[Line | None], tuple[str, ...]]:
    """Return the fields of a topology from a topology.txt, each link's line, and what is not used.

    Raises SpecError for the file's first fault.
    """
    first, *rest = lines
    words = _columns(first, ("nodes", "switches", "links"))
    nodes, number, links = (first.whole("nodes, switches, links", word, 1) for word in words)
    _check_rows(path, rest, links + 1, "lines of switches and links")
    of_switches, rows = rest[0], rest[1 : links + 1]
    if len(of_switches.words) != number:
        raise of_switches.error("switches", f"{len(of_switches.words)} numbers", f"{number}, as the first line says")
    switches = {of_switches.whole("switches", word, 0, nodes - 1) for word in of_switches.words}
    if len(switches) < number:
        raise of_switches.error("switches", f"{number - len(switches)} twice", "each switch once")
    names = {each: f"{'w' if each in switches else 'h'}{each}" for each in range(nodes)}
    unused = [f"{len(rest) - 1 - links} further lines: HPCC's program reads {links} links, too"]
    listed = [_link(line, names, place) for place, line in enumerate(rows, start=1)]
    _check_hosts(rows, listed)
    fields = {
        "hosts": [names[each] for each in range(nodes) if each not in switches],
        "switches": [names[each] for each in sorted(switches)],
        "links": listed,
        "delays": {"switch_us": 0.0, **INSTANT_NICS},
    }
    return fields, list(rows), tuple(unused if len(rest) > links + 1 else ())


def _link(line: Line, names: dict[int, str], place: int) -> dict[str, Any]:
    one, other, rate, delay, error_rate = _columns(line, LINK_COLUMNS)
    ends = [names[line.whole("node", word, 0, len(names) - 1)] for word in (one, other)]
    if line.number_of("error rate", error_rate, "a share of lost packets"):
        raise line.error("error rate", error_rate, "0: links lose no packets")
    return {
        "name": f"l{place}",
        "ends": ends,
        "line_rate_gbps": _quantity(line, "rate", rate, GBPS, "100Gbps"),
        "delay_us": _quantity(line, "delay", delay, US, "1000ns"),
    }


def _check_hosts(lines: list[Line], links: list[dict[str, Any]]) -> None:
    """Raise SpecError for a link between hosts, and for a host's second link: they forward no packets."""
    linked: set[str] = set()
    for line, link in zip(lines, links, strict=True):
        hosts = [end for end in link["ends"] if end.startswith("h")]
        if len(hosts) > 1:
            raise line.error("node", f"hosts {line.words[0]} and {line.words[1]}", "a switch at one end")
        if linked & set(hosts):
            raise line.error("node", f"a second link of host {hosts[0][1:]}", "one link of each host")
        linked.update(hosts)


def _quantity(line: Line, field: str, word: str, units: dict[str, float], example: str) -> float:
    """Return a number with its unit, in Gbit/s or us."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", word)
    unit = units.get(match[2]) if match else None
    if match is None or unit is None:
        expected = f"a number with one of {', '.join(units)}, as {example}"
        raise line.error(field, quote_value(shorten(word)), expected)
    return float(f"{line.number_of(field, match[1], 'a number') * unit:.9g}")
