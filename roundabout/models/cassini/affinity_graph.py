# SPDX-License-Identifier: Apache-2.0
"""The affinity graph, which turns a job's different time-shifts on its links into one (Algorithm 1).

Jobs and links are the two kinds of vertices. An edge joins a job to a link that it crosses, and its weight is the job's
time-shift there. Links that the same jobs share need the same time-shifts and are one vertex, so they close no loop.
Source: the interleaving thesis, section 4.4.1; the thesis has a vertex for each link.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from roundabout.models.cassini.errors import LoopError


class _Vertex(NamedTuple):
    is_link: bool
    name: str


def shared_links(crossing: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the links in `crossing` that several jobs cross, with these jobs; they are the graph's vertices."""
    return {link: tuple(dict.fromkeys(jobs)) for link, jobs in crossing.items() if len(set(jobs)) > 1}


def link_bundles(crossing: Mapping[str, Collection[str]]) -> list[tuple[str, ...]]:
    """Return the links in `crossing` that several jobs cross, grouped into bundles that the same jobs share."""
    bundles: dict[frozenset[str], list[str]] = {}
    for link, jobs in shared_links(crossing).items():
        bundles.setdefault(frozenset(jobs), []).append(link)
    return list(map(tuple, bundles.values()))


def find_loop(crossing: Mapping[str, Collection[str]]) -> tuple[str, ...] | None:
    """Return a loop of the affinity graph as alternating jobs and links, a job first; None if there is no loop.

    The first link of a bundle stands for all of them.
    """
    links = shared_links(crossing)
    near = _adjacency({bundle[0]: links[bundle[0]] for bundle in link_bundles(links)})
    parents: dict[_Vertex, _Vertex | None] = {}
    for start in near:
        if start in parents:
            continue
        parents[start] = None
        queue = deque([start])
        while queue:
            vertex = queue.popleft()
            for other in near[vertex]:
                if other not in parents:
                    parents[other] = vertex
                    queue.append(other)
                elif other != parents[vertex]:
                    return _close_loop(vertex, other, parents)
    return None


def time_shifts(weights: Mapping[str, Mapping[str, float]], iterations_ms: Mapping[str, float]) -> dict[str, float]:
    """Return a unique time-shift, ms, for each job that shares a link, by Algorithm 1.

    On each link l one constant c satisfies t_j = t_j^l + c (mod the iteration time of j) for all its jobs j. This keeps
    the jobs compatible (docs/explanation/cassini.md). The first job of each connected subgraph gets 0.

    Args:
        weights: the time-shift t_j^l of each job j on each link l, ms, by link and job; equal on links of a bundle.
        iterations_ms: the iteration time of each job.

    Raises:
        LoopError: the graph has a loop.
    """
    links = shared_links(weights)
    if found := find_loop(links):
        raise LoopError(found)
    crossed = _adjacency(links)
    shifts: dict[str, float] = {}
    for reference in (job for jobs in links.values() for job in jobs):
        if reference in shifts:
            continue
        shifts[reference] = 0.0
        queue = deque([reference])
        while queue:
            job = queue.popleft()
            for _, link in crossed[_Vertex(False, job)]:
                for other in links[link]:
                    if other not in shifts:
                        moved = shifts[job] - weights[link][job] + weights[link][other]
                        shifts[other] = moved % iterations_ms[other]
                        queue.append(other)
    return shifts


def pick_shifts(
    weights: Mapping[str, Mapping[str, float]], pick: Callable[[Sequence[float]], float]
) -> dict[str, float]:
    """Return for each job one of its links' time-shifts, ms, chosen by `pick`: the thesis' "simple approach".

    The thesis picks at random, as `random.Random(seed).choice` does. Links are then less compatible than computed.
    """
    offered: dict[str, list[float]] = {}
    for link, jobs in shared_links(weights).items():
        for job in jobs:
            offered.setdefault(job, []).append(weights[link][job])
    return {job: pick(shifts) for job, shifts in offered.items()}


def _adjacency(links: Mapping[str, Collection[str]]) -> dict[_Vertex, list[_Vertex]]:
    near: dict[_Vertex, list[_Vertex]] = {}
    for link, jobs in links.items():
        for job in jobs:
            near.setdefault(_Vertex(False, job), []).append(_Vertex(True, link))
            near.setdefault(_Vertex(True, link), []).append(_Vertex(False, job))
    return near


def _close_loop(one: _Vertex, other: _Vertex, parents: Mapping[_Vertex, _Vertex | None]) -> tuple[str, ...]:
    """Return the loop that an edge between two vertices of one search tree closes."""
    ways = [_path_to_root(vertex, parents) for vertex in (one, other)]
    junction = next(vertex for vertex in ways[0] if vertex in ways[1])
    up, down = (way[: way.index(junction)] for way in ways)
    around = [*up, junction, *reversed(down)]
    if around[0].is_link:
        around = [*around[1:], around[0]]
    return tuple(vertex.name for vertex in around)


def _path_to_root(vertex: _Vertex | None, parents: Mapping[_Vertex, _Vertex | None]) -> list[_Vertex]:
    way = []
    while vertex is not None:
        way.append(vertex)
        vertex = parents[vertex]
    return way
