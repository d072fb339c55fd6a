# SPDX-License-Identifier: Apache-2.0
"""The placement of workers near each other, and equally good alternatives to a placement.

A tree's hosts can be ordered in a line in which the hosts below each switch are consecutive. A subtree is a host, or
all hosts below a switch. With several paths, a subtree is all hosts that switches of one level or lower join. A job
gets the lowest subtree with enough free GPUs: a server, a rack (the hosts of one switch), and so on upwards.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roundabout.models.cassini.placement_ranking import MAX_CANDIDATES
from roundabout.models.cluster.errors import SchedulingError
from roundabout.models.cluster.state import Placement, Placements, State
from roundabout.spec.routing import FIRST_PORT
from roundabout.spec.topology import Topology

Ints = npt.NDArray[np.int64]

DRAWS = 3 * MAX_CANDIDATES
"""Number of draws for the candidates, because some draws repeat a candidate or are worse."""

AT_ONCE = 4
"""Number of jobs that are moved together. With more, it is likelier that one of them ends up less near."""


class Subtree(NamedTuple):
    """The hosts from index `begin` (inclusive) to `end` (exclusive) of the line, below `height` levels of switches."""

    begin: int
    end: int
    height: int


class HostTree:
    """A topology as a tree of hosts and switches, and placements on it.

    `hosts` is the line of hosts, `racks` maps a host to its switch, and `ways` maps it to its links up to the root.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        near: dict[str, dict[str, str]] = {}
        for link in topology.links:
            for one, other in (link.ends, link.ends[::-1]):
                near.setdefault(one, {})[other] = link.name
        known = set(topology.hosts)
        self.gpus_per_host = topology.gpus_per_host
        self.racks = {host: next(iter(near[host])) for host in topology.hosts}
        self.capacity_gbps = {link.name: link.payload_rate_gbps for link in topology.links}
        self.ways: dict[str, tuple[str, ...]] = {}
        self.gpus_per_rack = max(Counter(self.racks.values()).values()) * self.gpus_per_host
        self.hosts: list[str] = []
        rooms: list[Subtree] = []

        def height_of(node: str, above: str | None, way: tuple[str, ...]) -> int:
            begin, height = len(self.hosts), 0
            if node in known:
                self.hosts.append(node)
                self.ways[node] = way
            else:
                below = {other: link for other, link in near[node].items() if other != above}
                height = 1 + max((height_of(other, node, (link, *way)) for other, link in below.items()), default=0)
            rooms.append(Subtree(begin, len(self.hosts), height))
            return height

        if topology.is_tree:
            height_of(_find_root(near), None, ())
        else:
            self.hosts, rooms = _order_by_levels(near, topology.hosts)
        self.at = {host: place for place, host in enumerate(self.hosts)}
        self.begins, self.ends, self.heights = np.array(rooms).T

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of all hosts."""
        return len(self.hosts) * self.gpus_per_host

    def free(self, placements: Iterable[Placement]) -> Ints:
        """Return the number of GPUs of each host that these placements leave free, in the line's order."""
        return self.gpus_per_host - self.gpus_of(host for placement in placements for host in placement)

    def gpus_of(self, placement: Iterable[str]) -> Ints:
        """Return the number of GPUs that a placement takes of each host, in the line's order."""
        return np.bincount([self.at[host] for host in placement], minlength=len(self.hosts))

    def links_between(self, sender: str, receiver: str, source_port: int = FIRST_PORT) -> Iterator[tuple[str, bool]]:
        """Yield each link from one host to another, with a flag for its direction: in a tree, True if upwards.

        The source port matters for ECMP alone.
        """
        if not self._topology.is_tree:
            yield from (
                (hop.link.name, hop.sender == hop.link.ends[0])
                for hop in self._topology.path(sender, receiver, source_port)
            )
            return
        up, down = self.ways[sender], self.ways[receiver]
        same = next((count for count in range(min(len(up), len(down)), 0, -1) if up[-count:] == down[-count:]), 0)
        yield from ((link, True) for link in up[: len(up) - same])
        yield from ((link, False) for link in down[: len(down) - same])

    def locality(self, placement: Placement) -> int:
        """Return 0 for a placement within a server, 1 within a rack, 2 across racks."""
        if len(set(placement)) == 1:
            return 0
        return 1 if len({self.racks[host] for host in placement}) == 1 else 2

    def best_locality(self, workers: int) -> int:
        """Return the locality that `workers` workers can have on an empty cluster."""
        return 0 if workers <= self.gpus_per_host else 1 if workers <= self.gpus_per_rack else 2

    def pack(self, free: Ints, workers: int, rng: random.Random | None = None) -> Placement:
        """Take `workers` GPUs from `free`, as near to each other as possible, and return their placement.

        Of equally low subtrees the one with the fewest free GPUs is taken, or with `rng` a random one. If no single
        subtree below it suffices, all free GPUs of the emptiest one, or of a random one, are taken first, and so on.
        """
        taken = np.zeros_like(free)
        inside, left = np.ones(len(self.begins), bool), workers
        while left:
            counts = self._counts(free)
            fits = np.flatnonzero(inside & (counts >= left))
            lowest = fits[self.heights[fits] == self.heights[fits].min()]
            room = rng.choice(lowest.tolist()) if rng else int(lowest[counts[lowest].argmin()])
            inside &= (self.begins >= self.begins[room]) & (self.ends <= self.ends[room])
            count = left
            if self.heights[room]:
                below = np.flatnonzero(inside & (self.heights < self.heights[room]) & (counts > 0))
                below = below[self.heights[below] == self.heights[below].max()]
                room = rng.choice(below.tolist()) if rng else int(below[counts[below].argmax()])
                count = int(counts[room])
            _take(free, taken, slice(self.begins[room], self.ends[room]), count)
            left -= count
        return self.placement(taken)

    def grow(self, free: Ints, placement: Placement, workers: int) -> Placement:
        """Return a placement enlarged to `workers` workers, with GPUs of the lowest subtrees around its first host."""
        place, taken = self.at[placement[0]], self.gpus_of(placement)
        around = np.flatnonzero((self.begins <= place) & (self.ends > place))
        for room in around[self.heights[around].argsort()]:
            _take(free, taken, slice(self.begins[room], self.ends[room]), workers - int(taken.sum()))
        return placement if workers == len(placement) else self.placement(taken)

    def most_free(self, free: Ints, below: int, around: Placement = ()) -> int:
        """Return the most free GPUs of a subtree that is lower than height `below` and holds the hosts of `around`."""
        places = [self.at[host] for host in around]
        holds = np.all([(self.begins <= place) & (self.ends > place) for place in places], axis=0)
        return int(self._counts(free)[holds & (self.heights < below)].max(initial=0))

    def _counts(self, free: Ints) -> Ints:
        """Return the number of free GPUs of each subtree."""
        before = np.concatenate(([0], np.cumsum(free)))
        counts: Ints = before[self.ends] - before[self.begins]
        return counts

    def take(self, free: Ints, placement: Placement) -> bool:
        """Take a placement's GPUs from `free`. Return False if they are not free, or not as near as possible."""
        taken = self.gpus_of(placement)
        if (taken > free).any() or self.locality(placement) > self.best_locality(len(placement)):
            return False
        free -= taken
        return True

    def scatter(self, free: Ints, workers: int, rng: random.Random) -> Placement:
        """Take `workers` GPUs from `free` at random, and return their placement."""
        taken = np.zeros_like(free)
        for place in rng.sample(np.repeat(np.arange(free.size), free).tolist(), workers):
            taken[place] += 1
        free -= taken
        return self.placement(taken)

    def number_gpus(self, placement: Placement, taken: Mapping[str, Collection[int]]) -> tuple[int, ...]:
        """Return the number of each worker's GPU in its host: the lowest that are not `taken`, by host."""
        numbers = range(self.gpus_per_host)
        free = {host: iter(sorted({*numbers} - {*taken.get(host, ())})) for host in set(placement)}
        return tuple(next(free[host]) for host in placement)

    def placement(self, taken: Ints) -> Placement:
        """Return the placement with this number of GPUs on each host; workers near each other have adjacent ranks."""
        return tuple(self.hosts[place] for place in np.repeat(np.arange(taken.size), taken))


def _take(free: Ints, taken: Ints, room: slice, count: int) -> None:
    """Take the first `count` free GPUs of a subtree."""
    had = free[room].copy()
    got = np.minimum(had, np.maximum(count - (np.cumsum(had) - had), 0))
    free[room] -= got
    taken[room] += got


def _order_by_levels(near: Mapping[str, Iterable[str]], hosts: Sequence[str]) -> tuple[list[str], list[Subtree]]:
    """Return a line of the hosts, and the subtrees, of a topology with several paths.

    A switch's level is its distance from the nearest host. A subtree of a height consists of the hosts that are joined
    by switches up to this level.
    """
    levels = dict.fromkeys(hosts, 0)
    queue = deque(hosts)
    while queue:
        node = queue.popleft()
        for other in near[node]:
            if other not in levels:
                levels[other] = levels[node] + 1
                queue.append(other)
    groups = [[host] for host in hosts]
    by_height = [groups]
    for height in range(1, 1 + max(levels.values())):
        group_of = _components(near, [node for node, level in levels.items() if level <= height])
        merged: dict[int, list[str]] = {}
        for group in groups:
            merged.setdefault(group_of[group[0]], []).extend(group)
        groups = list(merged.values())
        by_height.append(groups)
    line = [host for group in groups for host in group]
    at = {host: place for place, host in enumerate(line)}
    # A subtree's first host is its leftmost one, because a merged group appends whole groups.
    return line, [
        Subtree(at[group[0]], at[group[0]] + len(group), height)
        for height, those in enumerate(by_height)
        for group in those
    ]


def _components(near: Mapping[str, Iterable[str]], nodes: Sequence[str]) -> dict[str, int]:
    """Return the number of the connected component of each node, among these nodes alone."""
    inside, found = set(nodes), dict[str, int]()
    for number, start in enumerate(nodes):
        frontier = [] if start in found else [start]
        while frontier:
            node = frontier.pop()
            if node not in found:
                found[node] = number
                frontier += [other for other in near[node] if other in inside]
    return found


def _find_root(near: Mapping[str, Iterable[str]]) -> str:
    """Return the switch in the middle of the longest path, which stands for the root."""
    way = _path_to_farthest(near, _path_to_farthest(near, next(iter(near)))[-1])
    return way[len(way) // 2]


def _path_to_farthest(near: Mapping[str, Iterable[str]], start: str) -> list[str]:
    """Return the path to the last node that a search reaches."""
    ways = {start: [start]}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in near[node]:
            if other not in ways:
                ways[other] = [*ways[node], other]
                queue.append(other)
    return ways[node]


@lru_cache(maxsize=8)
def host_tree_of(topology: Topology) -> HostTree:
    """Return the tree of a topology, which is cached."""
    return HostTree(topology)


def check_cluster(state: State) -> HostTree:
    """Return the tree of a cluster. Raises SchedulingError if a job needs more GPUs than the cluster has."""
    ground = host_tree_of(state.topology)
    for job in state.jobs:
        if job.request.workers > ground.gpus:
            found = f"found {job.request.workers} GPUs that {job.request.name} requests"
            expected = f"expected {ground.gpus} at most, all that {state.topology.name} has"
            raise SchedulingError(f"{found}, {expected}", "leave the job out, or take a larger topology")
    return ground


def draw_alternatives(
    first: Placements, draw: Callable[[random.Random], Placements | None], seed: int, most: int = MAX_CANDIDATES
) -> list[Placements]:
    """Return at most `most` different candidates: `first`, and those that `draw` returns; None is no candidate."""
    rng, found = random.Random(seed), [first]
    for _ in range(DRAWS):
        if len(found) >= most:
            break
        drawn = draw(rng)
        if drawn is not None and drawn not in found:
            found.append(drawn)
    return found


def swap_places(ground: HostTree, placements: Placements, jobs: Sequence[str], rng: random.Random) -> Placements:
    """Return placements in which a few of these jobs at a time exchange places, so that no job's locality worsens."""
    found, free = dict(placements), ground.free(placements.values())
    order = rng.sample(jobs, len(jobs))
    for begin in range(0, len(order), AT_ONCE):
        few = order[begin : begin + AT_ONCE]
        for job in few:
            free += ground.gpus_of(found[job])
        before = free.copy()
        drawn = {job: ground.pack(free, len(found[job]), rng) for job in few}
        if all(ground.locality(drawn[job]) <= ground.locality(found[job]) for job in few):
            found |= drawn
        else:
            free = before
            for job in few:
                free -= ground.gpus_of(found[job])
    return found


def place_jobs(ground: HostTree, wanted: Mapping[str, int], before: Placements, leased: Collection[str]) -> Placements:
    """Place the wanted number of workers of each job near each other, in the order of `wanted`.

    Jobs with a lease keep the GPUs that they had `before`, and get further ones close by. Other jobs with an unchanged
    number of workers stay if their placement is as near as possible.
    """
    free = ground.free(before[job] for job in leased)
    found = {job: ground.grow(free, before[job], wanted[job]) for job in wanted if job in leased}
    for job in wanted:
        if job not in found and len(before.get(job, ())) == wanted[job] and ground.take(free, before[job]):
            found[job] = before[job]
    for job in wanted:
        if job not in found:
            found[job] = ground.pack(free, wanted[job])
    return {job: found[job] for job in wanted}
