# SPDX-License-Identifier: Apache-2.0
"""Model of a topology: hosts, switches and links, as a tree or with several paths."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from roundabout.core.disjoint_sets import DisjointSets
from roundabout.spec.base import Name, NodeName, Positive, Strict, Text, Tuple, drop_defaults
from roundabout.spec.delays import Delay, Delays, FeedbackDelay
from roundabout.spec.frames import AROUND_BYTES, CNP_BYTES, payload_share, segment_bytes
from roundabout.spec.routing import FIRST_PORT, FiveTuple, Flow, Routing
from roundabout.spec.shared_buffer import SharedBuffer

RATES = ("line_rate_gbps", "payload_rate_gbps")


def _rates_have_defaults(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name not in RATES]


class Link(Strict):
    """A full-duplex link between two nodes. The topology's rates are the defaults of its rates."""

    model_config = ConfigDict(json_schema_extra=_rates_have_defaults)

    name: Name = Field(description="name of the link")
    ends: Annotated[tuple[NodeName, NodeName], Field(strict=False)] = Field(
        description="the two nodes that the link joins"
    )
    line_rate_gbps: Positive = Field(description="rate of all bits; default: the topology's")
    payload_rate_gbps: Positive = Field(description="rate of the payload; default: the topology's")
    bottleneck: bool = Field(default=False, description="whether reports are about this link")
    nic_queue: bool = Field(
        default=False, description="whether the host's NIC sends at the link's rate and queues packets beyond it"
    )
    delay_us: Delay | None = Field(default=None, description="propagation, us; default: the topology's delays.link_us")
    queue_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1,
        description="share of the topology's `queue_bytes` and of marking thresholds that its switch ports have, "
        "where switches set them by a port's rate",
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        return drop_defaults({"delay_us": None, "queue_share": 1}, handler(self))

    @model_validator(mode="after")
    def _payload_fits(self) -> Self:
        if self.payload_rate_gbps > self.line_rate_gbps:
            raise ValueError("a payload rate no higher than the line rate")
        return self


def count_hops(switch: str, beside: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """Return the number of links to a switch from each switch that has a path to it."""
    distances = {switch: 0}
    frontier = deque([switch])
    while frontier:
        node = frontier.popleft()
        for other in beside(node):
            if other not in distances:
                distances[other] = distances[node] + 1
                frontier.append(other)
    return distances


class _Fault(NamedTuple):
    location: tuple[str | int, ...]
    found: str
    expected: str


class Hop(NamedTuple):
    """A link in one direction, from `sender` to `receiver`."""

    link: Link
    sender: str
    receiver: str

    @property
    def turned(self) -> "Hop":
        """Return the other direction of the link."""
        return Hop(self.link, self.receiver, self.sender)


Direction = tuple[str, ...]
"""One direction of a link: (from, to), and the link's name if several links join the two nodes."""


class Topology(Strict):
    """Hosts and switches that form a tree, or that several paths join. Each host has one link, to a switch.

    With several paths `routing` says which of them a flow takes. With `rail` routing, or one that spreads packets, a
    host may have several links: one for each NIC, in the order of their numbers.

    `lossless` queues are deep and stand for a fabric with PFC; `lossy` queues drop packets. Rates are in the papers'
    units.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Name = Field(description="name of the topology")
    about: Text = Field(description="description in a sentence")
    source: Text | None = Field(default=None, description="paper, figure or table")
    line_rate_gbps: Positive = Field(description="rate of all bits, of links without their own")
    payload_rate_gbps: Positive = Field(description="rate of the payload, of links without their own")
    mtu_bytes: Annotated[int, Field(ge=1280, le=9978)] = Field(
        default=1500, description="MTU of all links; with its headers, it limits the payload rates"
    )
    queue: Literal["lossless", "lossy"] = Field(description="whether switch ports pause senders (PFC) or drop")
    queue_bytes: Annotated[int, Field(ge=1, le=10**12)] | None = Field(
        default=None,
        description="bytes that a port of a `lossy` topology queues before it drops; default: the testbed's choice",
    )
    trimming: bool = Field(
        default=False,
        description="of a `lossy` topology: whether a packet that finds no room loses its payload alone, and its "
        "header goes on before all data, and its receiver requests it again (packet trimming, Ultra Ethernet 1.0)",
    )
    buffer: SharedBuffer | None = Field(
        default=None,
        description="memory that the ports of a switch share; default: each queue and link has a limit of its own",
    )
    hosts: Annotated[Tuple[NodeName], Field(min_length=2)] = Field(description="names of the hosts")
    switches: Annotated[Tuple[NodeName], Field(min_length=1)] = Field(description="names of the switches")
    gpus_per_host: Annotated[int, Field(ge=1, le=4096)] = Field(
        default=1,
        description="GPUs of a host, one for each worker; traffic between workers of one host crosses no link",
    )
    links: Annotated[Tuple[Link], Field(min_length=1)] = Field(description="links: a tree, or loops with `routing`")
    delays: Delays = Field(default=Delays(), description="what paths' delays consist of, beside sending and queues")
    routing: Routing | None = Field(
        default=None, description="how switches choose among several paths; a tree has no use for it"
    )

    def __hash__(self) -> int:
        """Return a hash of the name and sizes, because hashing all links takes milliseconds at each look-up."""
        return hash((self.name, len(self.hosts), len(self.switches), len(self.links)))

    @model_validator(mode="before")
    @classmethod
    def _give_links_their_rates(cls, data: Any) -> Any:
        links = data.get("links") if isinstance(data, Mapping) else None
        if not isinstance(links, list | tuple):
            return data
        rates = {name: data[name] for name in RATES if name in data}
        return {**data, "links": [{**rates, **link} if isinstance(link, Mapping) else link for link in links]}

    @model_validator(mode="after")
    def _only_what_drops_is_short(self) -> Self:
        if self.queue_bytes is not None and self.queue == "lossless":
            problem = _Fault(("queue_bytes",), str(self.queue_bytes), "it with `queue: lossy` alone")
            raise PydanticCustomError("located", "{expected}", problem._asdict())
        return self

    @model_validator(mode="after")
    def _only_what_drops_is_trimmed(self) -> Self:
        if self.trimming and self.queue == "lossless":
            problem = _Fault(("trimming",), "true", "it with `queue: lossy` alone")
            raise PydanticCustomError("located", "{expected}", problem._asdict())
        return self

    @model_validator(mode="after")
    def _only_pfc_has_headroom(self) -> Self:
        for name in ("xon_offset_bytes", "headroom_bytes") if self.buffer and self.queue == "lossy" else ():
            if (found := getattr(self.buffer, name)) is not None:
                problem = _Fault(("buffer", name), str(found), "it with `queue: lossless` alone: PFC needs it")
                raise PydanticCustomError("located", "{expected}", problem._asdict())
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop fields at their defaults, so that trial keys hashed before a field existed stay valid."""
        since = {"trimming": False, "buffer": None, "delays": Delays().model_dump(), "routing": None}
        return drop_defaults(since, handler(self))

    @model_validator(mode="after")
    def _headers_fit(self) -> Self:
        for index, link in enumerate(self.links):
            most_gbps = link.line_rate_gbps * payload_share(self.mtu_bytes)
            if link.payload_rate_gbps > most_gbps:
                found = f"{link.payload_rate_gbps:g} Gbit/s of payload"
                leaves = f"what headers leave of {link.line_rate_gbps:g} at an MTU of {self.mtu_bytes}"
                problem = _Fault(("links", index), found, f"at most {most_gbps:.2f}, {leaves}")
                raise PydanticCustomError("located", "{expected}", problem._asdict())
        return self

    @model_validator(mode="after")
    def _is_connected(self) -> Self:
        if self._fault:
            raise PydanticCustomError("located", "{expected}", self._fault._asdict())
        return self

    @cached_property
    def _fault(self) -> _Fault | None:
        """Return the first fault in nodes and links. Each model that takes a topology validates it again."""
        checks = self._duplicate, self._loose_end, self._misplaced_link, self._loop_or_gap, self._rails_apart
        return next((found for check in checks if (found := check())), None)

    def _duplicate(self) -> _Fault | None:
        for field, names in (
            ("hosts", (*self.hosts, *self.switches)),
            ("links", tuple(link.name for link in self.links)),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                return _Fault((field,), f"'{twice[0]}' twice", "each name once")
        return None

    def _loose_end(self) -> _Fault | None:
        nodes = {*self.hosts, *self.switches}
        for index, link in enumerate(self.links):
            unknown = [end for end in link.ends if end not in nodes]
            if unknown:
                expected = f"hosts or switches of this topology ({', '.join(sorted(nodes))})"
                return _Fault(("links", index, "ends"), f"'{unknown[0]}'", expected)
        return None

    def _misplaced_link(self) -> _Fault | None:
        hosts = set(self.hosts)
        counts = Counter(end for link in self.links for end in set(link.ends))
        for host in self.hosts:
            if counts[host] == 0 or (counts[host] > 1 and not self._allows_rails):
                found = f"{counts[host]} links at host {host}"
                several = "for several NICs give `routing: {name: rail}`"
                return _Fault(("links",), found, f"exactly one link at each host; {several}")
        if any(hosts.issuperset(link.ends) for link in self.links):
            return _Fault(("links",), "a link between two hosts", "each host linked to a switch")
        for index, link in enumerate(self.links):
            if link.nic_queue and hosts.isdisjoint(link.ends):
                return _Fault(("links", index, "nic_queue"), "no host at the link", "one: switch ports always queue")
            if link.ends[0] == link.ends[1]:
                return _Fault(("links", index, "ends"), f"'{link.ends[0]}' twice", "two different nodes")
        return None

    def _loop_or_gap(self) -> _Fault | None:
        tree = "a tree: one way between any two nodes; for several give `routing`: static, ecmp or rail"
        joined = DisjointSets()
        for index, link in enumerate(self.links):
            one, other = map(joined.find, link.ends)
            if one == other and self.routing is None:
                return _Fault(("links", index, "ends"), f"a loop closed by {link.name}", tree)
            joined.join(link.ends)
        connected = joined.find(self.hosts[0])
        apart = [node for node in (*self.hosts, *self.switches) if joined.find(node) != connected]
        if apart:
            return _Fault(("links",), f"no way from {self.hosts[0]} to {apart[0]}", "a way between any two nodes")
        return None

    def _rails_apart(self) -> _Fault | None:
        """Return the fault if a flow could need a way between two rails that hosts alone join."""
        joined = DisjointSets()
        ends_at: dict[str, list[str]] = {host: [] for host in self.hosts}
        for link in self.links:
            for host, switch in (link.ends, link.ends[::-1]):
                if host in ends_at:
                    ends_at[host].append(switch)
            if not ends_at.keys() & link.ends:
                joined.join(link.ends)
        rails = {tuple(map(joined.find, switches)) for switches in ends_at.values()}
        first, *others = sorted({str(rail) for each in rails for rail in each})
        keeps_rails = self.routing is not None and (self.routing.pxn or self.routing.planes) and len(rails) == 1
        if not others or keeps_rails:
            return None
        expected = (
            "a way by switches, because hosts do not forward, or `routing: {name: rail, pxn: true}` or `{name: spray, "
            "planes: true}` and all hosts with the same rails in the same order"
        )
        return _Fault(("links",), f"only hosts between the switches {first} and {others[0]}", expected)

    def with_rates(self, line_rate_gbps: float | None, payload_rate_gbps: float | None) -> "Topology":
        """Return the topology at other rates, in Gbit/s. Links that have the topology's rates change, too.

        None keeps a rate, but a new line rate also scales the payload rate. Raises ValidationError if the payload rate
        leaves no room for headers.
        """
        line = line_rate_gbps or self.line_rate_gbps
        rates = {"line_rate_gbps": line, "payload_rate_gbps": payload_rate_gbps or self.payload_rate_gbps}
        if payload_rate_gbps is None:
            rates["payload_rate_gbps"] *= line / self.line_rate_gbps
        links = [
            link.model_dump() | {name: rates[name] for name in RATES if getattr(link, name) == getattr(self, name)}
            for link in self.links
        ]
        return Topology.model_validate(self.model_dump() | rates | {"links": links})

    def with_delays(self, delays: Delays) -> "Topology":
        """Return the topology with the fields that are set in `delays` in place of its own."""
        own = self.delays.model_copy(update=delays.model_dump(exclude_unset=True))
        return self.model_copy(update={"delays": own})

    def with_routing(self, routing: Routing) -> "Topology":
        """Return the topology with another routing. A tree keeps its own, because it has one path for each flow."""
        return self if self.is_tree else Topology.model_validate(self.model_dump() | {"routing": routing})

    @property
    def bottleneck(self) -> Link:
        """Return the link marked `bottleneck`, or else the narrowest link. If several are equal, return the first."""
        marked = [link for link in self.links if link.bottleneck]
        return min(marked or self.links, key=lambda link: link.payload_rate_gbps)

    @cached_property
    def _hops_by_node(self) -> dict[str, tuple[Hop, ...]]:
        hops: dict[str, list[Hop]] = {node: [] for node in (*self.hosts, *self.switches)}
        for link in self.links:
            for sender, receiver in (link.ends, link.ends[::-1]):
                hops[sender].append(Hop(link, sender, receiver))
        return {node: tuple(each) for node, each in hops.items()}

    def links_of(self, host: str) -> tuple[Link, ...]:
        """Return the links of a host, one for each NIC, in their order."""
        return tuple(hop.link for hop in self._hops_by_node[host])

    def nic_name(self, host: str, number: int) -> str:
        """Return the name of a host's NIC: the host's, or that of the NIC's link if the host has several."""
        return self.first_hop(host, number).link.name if len(self._hops_by_node[host]) > 1 else host

    @cached_property
    def nics(self) -> Mapping[str, tuple[str, int]]:
        """Return the host and the number of each NIC, by the NIC's name."""
        numbered = ((host, number) for host in self.hosts for number in range(len(self._hops_by_node[host])))
        return {self.nic_name(*each): each for each in numbered}

    def nic_path(self, sender: str, receiver: str, source_port: int = FIRST_PORT) -> tuple[Hop, ...]:
        """Return the path of a flow from one NIC to another, by their names."""
        (source, own), (to, other) = self.nics[sender], self.nics[receiver]
        return self.path(source, to, source_port, (own, other))

    @cached_property
    def is_tree(self) -> bool:
        """Return True if there is one path between any two nodes."""
        return len(self.links) == len(self.hosts) + len(self.switches) - 1

    @cached_property
    def hashes_flows(self) -> bool:
        """Return True if flows between the same two hosts may take different paths."""
        return not self.is_tree and self.routing is not None and self.routing.name != "static"

    @cached_property
    def spreads_packets(self) -> bool:
        """Return True if packets of one flow may take different paths."""
        return not self.is_tree and self.routing is not None and self.routing.spreads_packets

    @property
    def _allows_rails(self) -> bool:
        return self.routing is not None and (self.routing.name == "rail" or self.routing.spreads_packets)

    @cached_property
    def has_rails(self) -> bool:
        """Return True if a host has several NICs."""
        return any(len(self._hops_by_node[host]) > 1 for host in self.hosts)

    @property
    def crosses_nvlink(self) -> bool:
        """Return True if flows to another rail leave by the NIC of that rail, as with NCCL's PXN."""
        return self.has_rails and self.routing is not None and self.routing.pxn

    @cached_property
    def host_numbers(self) -> Mapping[str, int]:
        """Return each host's place among the hosts."""
        return {host: number for number, host in enumerate(self.hosts)}

    @cached_property
    def _switches(self) -> frozenset[str]:
        return frozenset(self.switches)

    @cached_property
    def _joined_by_several(self) -> frozenset[frozenset[str]]:
        counts = Counter(frozenset(link.ends) for link in self.links)
        return frozenset(ends for ends, count in counts.items() if count > 1)

    def has_parallel_links(self, one: str, other: str) -> bool:
        """Return True if several links join the two nodes."""
        return bool(self._joined_by_several) and frozenset((one, other)) in self._joined_by_several

    def direction(self, link: Link, sender: str, receiver: str) -> Direction:
        """Return the direction of a link from `sender` to `receiver`, which distinguishes parallel links."""
        return (sender, receiver, link.name) if self.has_parallel_links(*link.ends) else (sender, receiver)

    def directions(self, path: tuple[Hop, ...]) -> tuple[Direction, ...]:
        """Return the directions of a path's links."""
        return tuple(self.direction(*hop) for hop in path)

    def path(
        self, sender: str, receiver: str, source_port: int = FIRST_PORT, nics: tuple[int, int] = (0, 0)
    ) -> tuple[Hop, ...]:
        """Return the links from one host to another, in order. The path from a host to itself is empty.

        With several paths, return the one that the topology's routing gives to the flow. The source port matters for
        ECMP and rails alone, and so do the numbers of the NICs, which are counted anew behind a host's last. If packets
        of a flow take different paths, return one of them, which has as many links as the others; `link_shares` has
        all of them.
        """
        if sender == receiver:
            return ()
        flow = FiveTuple(sender, receiver, source_port)
        first, last = self.first_hop(sender, nics[0]), self.first_hop(receiver, nics[1]).turned
        route = [first]
        while (node := route[-1].receiver) != last.sender:
            onward = self._hops_nearer(node, last.sender)
            route.append(self._choose(flow, node, route[-1].link, onward))
        return (*route, last)

    def _choose(self, flow: FiveTuple, switch: str, entered_by: Link, onward: tuple[Hop, ...]) -> Hop:
        """Return the routing's choice among the hops by which a flow can go on from a switch. A tree has only one."""
        if len(onward) == 1:
            return onward[0]
        assert self.routing is not None
        return onward[self.routing.choose(flow, switch, entered_by.name, len(onward))]

    def link_shares(self, flow: Flow) -> Mapping[Hop, float]:
        """Return the share of a flow's bytes that each link carries.

        It is 1 for all links of a flow with one path. If packets of a flow take different paths, each switch spreads
        them evenly over the links that lead nearer, which is the mean of random choices and of shortest queues.
        """
        if not self.spreads_packets:
            return dict.fromkeys(self.path(*flow), 1)
        found = defaultdict[Hop, float](float)
        planes = self.planes(flow)
        for first, last in planes:
            between = self._shares_between(first.receiver, last.sender)
            for hop, share in {first: 1.0, **between, last: 1.0}.items():
                found[hop] += share / len(planes)
        return found

    def planes(self, flow: Flow) -> tuple[tuple[Hop, Hop], ...]:
        """Return the first and the last link of a flow's packets: one pair, or one for each NIC if they take all."""
        if flow.sender == flow.receiver:
            return ()
        nics = [flow.nics]
        if self.routing and self.routing.planes:
            nics = [(number, number) for number in range(len(self._hops_by_node[flow.sender]))]
        return tuple((self.first_hop(flow.sender, own), self.first_hop(flow.receiver, far).turned) for own, far in nics)

    @cached_property
    def _shares_by_ends(self) -> dict[tuple[str, str], Mapping[Hop, float]]:
        return {}

    def _shares_between(self, switch: str, other: str) -> Mapping[Hop, float]:
        """Return the share of packets from one switch to another that each link between them carries."""
        if (switch, other) not in self._shares_by_ends:
            found, at = dict[Hop, float](), {switch: 1.0}
            while at.keys() != {other}:
                onward = defaultdict[str, float](float)
                for node, share in at.items():
                    hops = self._hops_nearer(node, other)
                    for hop in hops:
                        found[hop] = share / len(hops)
                        onward[hop.receiver] += found[hop]
                at = onward
            self._shares_by_ends[switch, other] = found
        return self._shares_by_ends[switch, other]

    def first_hop(self, host: str, nic: int) -> Hop:
        """Return the hop by which a host's NIC of this number sends. Numbers behind its last NIC begin anew."""
        own = self._hops_by_node[host]
        return own[nic % len(own)]

    @cached_property
    def _nearer(self) -> dict[tuple[str, str], tuple[Hop, ...]]:
        return {}

    def _hops_nearer(self, node: str, switch: str) -> tuple[Hop, ...]:
        """Return the links from a switch on shortest paths to another one, in the order of the topology's links."""
        if (node, switch) not in self._nearer:
            distances = self._distances(switch)
            self._nearer[node, switch] = tuple(
                hop for hop in self._hops_by_node[node] if distances.get(hop.receiver, math.inf) < distances[node]
            )
        return self._nearer[node, switch]

    @cached_property
    def _distances_of(self) -> dict[str, dict[str, int]]:
        return {}

    def hops_between(self, switch: str, other: str) -> frozenset[Hop]:
        """Return the hops of all shortest paths from one switch to another, which flows' hashes choose among."""
        return frozenset(self._shares_between(switch, other))

    def _distances(self, switch: str) -> dict[str, int]:
        """Return the number of links from each switch to this one."""
        if switch not in self._distances_of:
            self._distances_of[switch] = count_hops(switch, self._switches_beside.__getitem__)
        return self._distances_of[switch]

    @cached_property
    def _switches_beside(self) -> dict[str, tuple[str, ...]]:
        """Return the switches at the other ends of each switch's links."""
        others = {node: dict.fromkeys(hop.receiver for hop in self._hops_by_node[node]) for node in self.switches}
        return {node: tuple(filter(self._switches.__contains__, each)) for node, each in others.items()}

    def path_payload_gbps(
        self, sender: str, receiver: str, source_port: int = FIRST_PORT, nics: tuple[int, int] = (0, 0)
    ) -> float:
        """Return the lowest payload rate on a flow's path, in Gbit/s. The arguments are those of `path`."""
        return min(hop.link.payload_rate_gbps for hop in self.path(sender, receiver, source_port, nics))

    def hop_delay_us(self, hop: Hop) -> float:
        """Return the time from a packet's last bit on a link until its receiver has it, in us."""
        delays = self.delays
        link_us = delays.link_us if hop.link.delay_us is None else hop.link.delay_us
        return link_us + (delays.nic_us if hop.receiver in self.host_numbers else delays.switch_us)

    def feedback_delay(self, sender: str, receiver: str) -> FeedbackDelay:
        """Return the time from a mark to the cut of the sender's rate, on the path between two hosts.

        The port at the path's bottleneck marks: of the links behind a switch the one that is marked `bottleneck`, or
        else the first of the narrowest. Packets are as long as the MTU allows, and wait nowhere.
        """
        path, back = self.path(sender, receiver), self.path(receiver, sender)
        behind = range(1, len(path))
        at = min(behind, key=lambda each: (not path[each].link.bottleneck, path[each].link.payload_rate_gbps))
        packet_bits, cnp_bits = (8 * size for size in (segment_bytes(self.mtu_bytes), CNP_BYTES + AROUND_BYTES))
        us = sum(packet_bits / hop.link.payload_rate_gbps / 1e3 + self.hop_delay_us(hop) for hop in path[at:])
        us += sum(cnp_bits / hop.link.line_rate_gbps / 1e3 + self.hop_delay_us(hop) for hop in back)
        us += self.delays.mark_to_cnp_us + self.delays.cnp_to_cut_us
        return FeedbackDelay(us, us + self.delays.cnp_jitter_us)
