# SPDX-License-Identifier: Apache-2.0
"""Reader of Slurm's `topology.conf` for the plugin `topology/tree`.

Its lines and their parameters are those of the man page topology.conf(5) of Slurm 26.11. Comments, continued lines and
quoted values are those of Slurm's parser (src/common/parse_config.c).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from analysis.advice.senders import HostsError, expand_hosts
from analysis.advice.topologies.switch_tree import Switch
from roundabout.spec.errors import SpecError, expected_names, quote_value
from roundabout.spec.reader.yaml_source import MAX_BYTES, read_text, shown_path

PARAMETER = re.compile(r'([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)')
NAMES = ("SwitchName", "Nodes", "Switches", "LinkSpeed")
OTHER_PLUGINS = {"blockname": "topology/block", "blocksizes": "topology/block", "ringname": "topology/ring"}
EXAMPLE = "SwitchName=s0 Nodes=node[01-08] or SwitchName=s4 Switches=s[0-3]"
LINK_SPEED_NOTE = "LinkSpeed is not used: it is a number without a unit, and Slurm ignores it"


def read_switches(path: Path) -> tuple[list[Switch], tuple[str, ...]]:
    """Return the switches of a file, and notes on what is not used. Raises SpecError."""
    file = shown_path(path)
    switches, has_speeds = [], False
    for line, text in _logical_lines(read_text(path, file, MAX_BYTES)):
        parameters = _parse_parameters(file, line, text)
        has_speeds = has_speeds or "linkspeed" in parameters
        switches.append(_parse_switch(file, line, parameters))
    if not switches:
        raise SpecError(file, "no switch", f"lines such as {EXAMPLE}")
    return switches, (LINK_SPEED_NOTE,) if has_speeds else ()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, without comments and with their continuations, and their numbers."""
    begin, parts = 1, list[str]()
    for line, each in enumerate(text.split("\n"), start=1):
        part = each.partition("#")[0].rstrip()
        parts.append(part.removesuffix("\\"))
        if part.endswith("\\"):
            continue
        if joined := "".join(parts).strip():
            yield begin, joined
        begin, parts = line + 1, []
    if joined := "".join(parts).strip():
        yield begin, joined


def _parse_parameters(file: str, line: int, text: str) -> dict[str, str]:
    """Return the values of a line's parameters, by their names in lower case."""
    parameters: dict[str, str] = {}
    at = 0
    while at < len(text):
        if not (match := PARAMETER.match(text, at)):
            raise SpecError(file, quote_value(text[at:]), f"parameters as in {EXAMPLE}", line=line)
        name = match[1].lower()
        if plugin := OTHER_PLUGINS.get(name):
            hint = "describe the switches in another file; blocks and rings have no cables"
            raise SpecError(file, f"{match[1]}, of {plugin}", "lines of topology/tree", line=line, hint=hint)
        if name not in map(str.lower, NAMES):
            expected, similar = expected_names(match[1], NAMES)
            raise SpecError(file, f"the parameter {quote_value(match[1])}", expected, line=line, hint=similar)
        if name in parameters:
            raise SpecError(file, f"{match[1]} a second time in this line", "it once", line=line)
        parameters[name] = match[3] if match[2] is None else match[2]
        at = match.end()
    return parameters


def _parse_switch(file: str, line: int, parameters: dict[str, str]) -> Switch:
    name = parameters.get("switchname")
    if not name:
        raise SpecError(file, "no SwitchName", f"a line such as {EXAMPLE}", line=line)
    if "nodes" in parameters and "switches" in parameters:
        found = f"both Nodes and Switches of {quote_value(name)}"
        raise SpecError(file, found, "one of them, as in Slurm", line=line)
    hosts, below = (_expand(file, line, field, parameters.get(field.lower())) for field in ("Nodes", "Switches"))
    return Switch(name, hosts, below, line)


def _expand(file: str, line: int, field: str, names: str | None) -> tuple[str, ...]:
    try:
        return () if names is None else tuple(dict.fromkeys(expand_hosts(names)))
    except HostsError as error:
        raise SpecError(file, error.found, error.expected, field=field, line=line) from None
