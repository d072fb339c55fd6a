# SPDX-License-Identifier: Apache-2.0
"""The nodes and links of a topology in tiers, with equal nodes as one, for a picture that stays readable."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from roundabout.spec import Link, Topology

MAX_LETTERS = 120
"""Largest number of letters in the boxes of a tier, so that they fit side by side."""
BOX_LETTERS = 3
"""Letters that a box takes besides its label, and the least letters of a label."""
Neighbours = Mapping[str, Sequence[tuple[str, Link]]]


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that one box stands for: their names, and their tier, which is 0 for hosts."""

    names: tuple[str, ...]
    tier: int

    @property
    def label(self) -> str:
        """Return the name of a lone node, or the first and the last name."""
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]} … {self.names[-1]}"


@dataclass(frozen=True)
class LinkGroup:
    """The links between two groups, all of one rate. `lower` is in the same tier as `upper`, or in a lower one."""

    lower: NodeGroup
    upper: NodeGroup
    links: tuple[Link, ...]

    @property
    def rate_gbps(self) -> float:
        """Return the line rate of each link."""
        return self.links[0].line_rate_gbps

    @property
    def is_bottleneck(self) -> bool:
        """Return True if the topology marks one of the links as a bottleneck."""
        return any(link.bottleneck for link in self.links)


@dataclass(frozen=True)
class GroupedTopology:
    """A topology as groups by tier, from hosts upwards, and the links between them."""

    tiers: tuple[tuple[NodeGroup, ...], ...]
    links: tuple[LinkGroup, ...]


def group_topology(topology: Topology) -> GroupedTopology:
    """Return the topology with no more nodes grouped than it takes for each tier to fit into a picture.

    Hosts are grouped if they have equal links to the same switches. If that is not enough, all nodes are grouped that
    have equal links to equal nodes (color refinement), and in the end all of a tier.
    """
    neighbours = _neighbours(topology)
    tiers = _tiers(topology, neighbours)
    choices: tuple[Callable[[], Mapping[str, Hashable]], ...] = (
        lambda: {node: node for node in tiers},
        lambda: _hosts_by_switches(topology, neighbours),
        lambda: _refine(tiers, neighbours),
        lambda: tiers,
    )
    found = (_grouped(topology, tiers, choice()) for choice in choices)
    return next((each for each in found if _fits(each)), None) or _grouped(topology, tiers, tiers)


def _fits(grouped: GroupedTopology) -> bool:
    return all(sum(map(box_letters, tier)) <= MAX_LETTERS for tier in grouped.tiers)


def box_letters(group: NodeGroup) -> int:
    """Return the width of a group's box in letters."""
    return max(len(group.label), BOX_LETTERS) + BOX_LETTERS


def _neighbours(topology: Topology) -> Neighbours:
    found: dict[str, list[tuple[str, Link]]] = defaultdict(list)
    for link in topology.links:
        for one, other in (link.ends, link.ends[::-1]):
            found[one].append((other, link))
    return found


def _tiers(topology: Topology, neighbours: Neighbours) -> dict[str, int]:
    """Return each node's number of links to the nearest host."""
    tiers = dict.fromkeys(topology.hosts, 0)
    reached = list(topology.hosts)
    for node in reached:
        for other, _ in neighbours[node]:
            if other not in tiers:
                tiers[other] = tiers[node] + 1
                reached.append(other)
    return tiers


def _kind(link: Link) -> Hashable:
    """Return what makes links equal: all but the name, the ends, and the mark of a bottleneck."""
    return link.model_dump_json(exclude={"name", "ends", "bottleneck"})


def _hosts_by_switches(topology: Topology, neighbours: Neighbours) -> dict[str, Hashable]:
    """Return a color for each node; hosts with equal links to the same switches have the same."""
    colours: dict[str, Hashable] = {switch: switch for switch in topology.switches}
    for host in topology.hosts:
        colours[host] = tuple((switch, _kind(link)) for switch, link in neighbours[host])
    return colours


def _refine(tiers: Mapping[str, int], neighbours: Neighbours) -> dict[str, int]:
    """Return a color for each node, equal for nodes of one tier with as many equal links to nodes of each color."""
    kinds = {link.name: _kind(link) for links in neighbours.values() for _, link in links}
    colours = dict(tiers)
    while True:
        around = {
            node: Counter((colours[other], kinds[link.name]) for other, link in links)
            for node, links in neighbours.items()
        }
        signatures = {node: (colours[node], frozenset(counts.items())) for node, counts in around.items()}
        numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures.values()))}
        if len(numbers) == len(set(colours.values())):
            return colours
        colours = {node: numbers[signature] for node, signature in signatures.items()}


def _grouped(topology: Topology, tiers: Mapping[str, int], colours: Mapping[str, Hashable]) -> GroupedTopology:
    names: dict[tuple[int, Hashable], list[str]] = defaultdict(list)
    for node in (*topology.hosts, *topology.switches):
        names[tiers[node], colours[node]].append(node)
    groups = [NodeGroup(tuple(nodes), tier) for (tier, _), nodes in names.items()]
    group_of = {node: group for group in groups for node in group.names}
    links: dict[tuple[NodeGroup, NodeGroup, float], list[Link]] = defaultdict(list)
    for link in topology.links:
        lower, upper = sorted((group_of[end] for end in link.ends), key=lambda group: group.tier)
        if lower.tier == upper.tier and (upper, lower, link.line_rate_gbps) in links:
            lower, upper = upper, lower
        links[lower, upper, link.line_rate_gbps].append(link)
    found = tuple(LinkGroup(lower, upper, tuple(same)) for (lower, upper, _), same in links.items())
    return GroupedTopology(_ordered(groups, found), found)


def _ordered(groups: Sequence[NodeGroup], links: Sequence[LinkGroup]) -> tuple[tuple[NodeGroup, ...], ...]:
    """Return the groups by tier, each tier in the order of the middles of its neighbours below (barycenters)."""
    below: dict[NodeGroup, list[NodeGroup]] = defaultdict(list)
    above: dict[NodeGroup, list[NodeGroup]] = defaultdict(list)
    for link in links:
        if link.lower.tier < link.upper.tier:
            below[link.upper].append(link.lower)
            above[link.lower].append(link.upper)
    tiers = [[group for group in groups if group.tier == tier] for tier in range(max(each.tier for each in groups) + 1)]
    for tier in tiers[1:]:
        place = {group: (number + 0.5) / len(each) for each in tiers for number, group in enumerate(each)}
        tier.sort(key=lambda group: fmean(place[each] for each in below[group]) if below[group] else 1.0)
    place = {group: (number + 0.5) / len(each) for each in tiers for number, group in enumerate(each)}
    tiers[0].sort(key=lambda group: fmean(place[each] for each in above[group]))
    return tuple(map(tuple, tiers))
