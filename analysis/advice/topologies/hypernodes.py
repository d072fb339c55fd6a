# SPDX-License-Identifier: Apache-2.0
"""Reader of Volcano's HyperNodes (topology.volcano.sh/v1alpha1), as manifests or `kubectl get hypernodes -o yaml`.

Volcano's page "Network Topology Aware Scheduling" says what members and selectors mean: a HyperNode mostly is a
switch, it has at most one parent, and patterns select nodes only. Volcano's scheduler joins several roots by another.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.advice.topologies.switch_tree import Switch
from roundabout.spec.errors import quote_value
from roundabout.spec.reader.json_source import Location
from roundabout.spec.reader.yaml_source import Content, load_documents

API = "topology.volcano.sh/"
SELECTORS = ("exactMatch", "regexMatch", "labelMatch")
VIRTUAL_ROOT = "the cluster"
HYPERNODE_NOTE = "each HyperNode is taken for a switch, also where it is a group of nodes that NVLink joins"
PATTERN_NOTE = "regexMatch selects among the hosts of --jobs, so no swap moves to a free host that a pattern selects"
LABEL_HINT = "list the nodes by exactMatch; `kubectl get nodes -l LABEL=VALUE` prints them"


def read_switches(path: Path, hosts: Collection[str]) -> tuple[list[Switch], tuple[str, ...]]:
    """Return the HyperNodes of a file as switches, and notes. Patterns select among `hosts`. Raises SpecError."""
    switches, has_patterns = [], False
    for content in _hypernodes(path):
        members = _members(content)
        has_patterns = has_patterns or any("regexMatch" in each.get("selector", ()) for each in members)
        switches.append(_parse_switch(content, members, hosts))
    below = {name for switch in switches for name in switch.switches}
    roots = tuple(switch.name for switch in switches if switch.name not in below)
    if len(roots) > 1:
        switches.append(Switch(VIRTUAL_ROOT, (), roots, None))
    return switches, (HYPERNODE_NOTE, *((PATTERN_NOTE,) if has_patterns else ()))


def _hypernodes(path: Path) -> Iterator[Content]:
    """Yield each HyperNode of the file's documents and lists."""
    for document in load_documents(path):
        root = document.root
        if root in (None, ""):
            continue
        if isinstance(root, Mapping) and str(root.get("kind")).endswith("List") and isinstance(root.get("items"), list):
            yield from (_check_kind(Content(document.file, item, document.find(("items",)))) for item in root["items"])
        else:
            yield _check_kind(document)


def _check_kind(content: Content) -> Content:
    kind = content.root.get("kind") if isinstance(content.root, Mapping) else content.root
    if kind != "HyperNode":
        raise content.error(("kind",), quote_value(kind), f"HyperNode, of {API}v1alpha1")
    return content


def _members(content: Content) -> list[Mapping[str, Any]]:
    spec = content.root.get("spec")
    members = spec.get("members", []) if isinstance(spec, Mapping) else None
    if not isinstance(members, list) or not all(isinstance(each, Mapping) for each in members):
        raise content.error(("spec", "members"), quote_value(members), "a list of members, each with type and selector")
    return members


def _parse_switch(content: Content, members: list[Mapping[str, Any]], hosts: Collection[str]) -> Switch:
    name = _text(content, (), content.root, "metadata", "name")
    mark = content.find(("metadata", "name"))
    found: dict[str, dict[str, None]] = {"Node": {}, "HyperNode": {}}
    for place, member in enumerate(members):
        where, kind = ("spec", "members", place), member.get("type")
        if not isinstance(kind, str) or kind not in found:
            raise content.error((*where, "type"), quote_value(kind), "Node or HyperNode")
        found[kind].update(dict.fromkeys(_select(content, where, member, hosts)))
    return Switch(name, tuple(found["Node"]), tuple(found["HyperNode"]), mark.line if mark else None)


def _select(content: Content, where: Location, member: Mapping[str, Any], hosts: Collection[str]) -> list[str]:
    """Return the names that a member's selector selects."""
    selector = member.get("selector")
    given = [each for each in SELECTORS if isinstance(selector, Mapping) and each in selector]
    if len(given) != 1:
        expected = f"one of {', '.join(SELECTORS)}"
        raise content.error((*where, "selector"), ", ".join(given) or quote_value(selector), expected)
    inside = (*where, "selector")
    if given == ["exactMatch"]:
        return [_text(content, where, member, "selector", "exactMatch", "name")]
    if given == ["labelMatch"]:
        raise content.error(inside, "labelMatch", "names of nodes: labels are not in this file", hint=LABEL_HINT)
    if member["type"] == "HyperNode":
        raise content.error(inside, "regexMatch", "exactMatch, as Volcano requires for HyperNodes")
    pattern = _text(content, where, member, "selector", "regexMatch", "pattern")
    try:
        selects = re.compile(pattern).search
    except re.error as error:
        raise content.error(inside, f"the pattern {quote_value(pattern)}", f"a valid one: {error}") from None
    return [host for host in hosts if selects(host)]


def _text(content: Content, where: Location, value: Any, *steps: str) -> str:
    """Return the text at `steps` below `value`, whose place is `where`."""
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    if not isinstance(value, str) or not value:
        raise content.error((*where, *steps), quote_value(value), "a name" if steps[-1] == "name" else "a pattern")
    return value
