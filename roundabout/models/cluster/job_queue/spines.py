# SPDX-License-Identifier: Apache-2.0
"""Rules that choose the spine of each flow between two leaves of a leaf-spine.

Source: MonkeyTree (arXiv 2602.08296) and its simulator (hipersys-team/MonkeyTree). Rules see all flows of the jobs that
run, each once, whatever it sends. docs/reference/schedulers.md says what each does.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roundabout.models.cluster.job_queue.job_shape import Bools, Ints

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Factors of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), whose bits the hash of a flow mixes."""


@dataclass(frozen=True)
class Flows:
    """All flows between leaves: NICs and leaves of their ends, their jobs' numbers, and which are of rings.

    `nics` and `leaves` are arrays (2, flows), of senders and receivers. Jobs follow each other in the order of falling
    intensity. `nic_loads` has, for each flow, how many earlier ones its busier NIC has, within its leaf too.
    """

    nics: Ints
    leaves: Ints
    jobs: Ints
    are_rings: Bools
    nic_loads: Ints


def hash_spines(flows: Flows, spines: int, seed: int) -> Ints:
    """Choose by a hash of the ends and the job, as ECMP does."""
    mixed = np.full(flows.jobs.size, seed, np.uint64)
    for part in (*flows.nics, flows.jobs):
        mixed = _mix(mixed ^ part.astype(np.uint64))
    return (mixed % np.uint64(spines)).astype(np.int64)


def _mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


def least_loaded_spines(flows: Flows, spines: int, seed: int) -> Ints:
    """Choose, job by job, the first spine with the fewest flows on the busiest of a path's links: Crux' paths.

    A path has the NICs' links, too, so that spines are alike which have no more flows than these.
    """
    del seed
    leaves = int(flows.leaves.max(initial=-1)) + 1
    up, down = np.zeros((leaves, spines), np.int64), np.zeros((leaves, spines), np.int64)
    found = np.empty(flows.jobs.size, np.int64)
    for place, (leaf, other) in enumerate(flows.leaves.T):
        spine = np.maximum(np.maximum(up[leaf], down[other]), flows.nic_loads[place]).argmin()
        up[leaf, spine] += 1
        down[other, spine] += 1
        found[place] = spine
    return found


def colored_spines(flows: Flows, spines: int, seed: int) -> Ints:
    """Colour rings' flows so that those of a leaf differ, a color a spine; others take turns, leaf by leaf.

    The graph of leaves is filled up to equal degrees and taken apart into perfect matchings. With more colors than
    spines these are reused in turn.
    """
    del seed
    found = np.empty(flows.jobs.size, np.int64)
    rings, others = np.flatnonzero(flows.are_rings), np.flatnonzero(~flows.are_rings)
    found[rings] = color_edges(flows.leaves[:, rings]) % spines
    turns: dict[int, int] = {}
    of_pair: dict[tuple[int, ...], int] = {}
    for place in others.tolist():
        pair, leaf = tuple(flows.nics[:, place].tolist()), int(flows.leaves[0, place])
        if pair not in of_pair:
            of_pair[pair] = (leaf + turns.get(leaf, 0)) % spines
            turns[leaf] = turns.get(leaf, 0) + 1
        found[place] = of_pair[pair]
    return found


def color_edges(leaves: Ints) -> Ints:
    """Return the color of each edge of a bipartite graph, whose vertices are sending and receiving leaves."""
    from scipy import sparse  # noqa: PLC0415 - slow to import, and no other rule needs it
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    count = int(leaves.max(initial=-1)) + 1
    edges: list[list[list[int]]] = [[[] for _ in range(count)] for _ in range(count)]
    for place, (leaf, other) in enumerate(leaves.T.tolist()):
        edges[leaf][other].append(place)
    real = np.array([[len(own) for own in row] for row in edges], np.int64).reshape(count, count)
    left = real + _filling(real)
    found = np.zeros(leaves.shape[1], np.int64)
    for color in range(int(left.sum(axis=1).max(initial=0))):
        matched = maximum_bipartite_matching(sparse.csr_array(left), perm_type="column")
        left[np.arange(count), matched] -= 1
        for leaf, other in enumerate(matched.tolist()):
            if edges[leaf][other]:
                found[edges[leaf][other].pop()] = color
    return found


def _filling(real: Ints) -> Ints:
    """Return the numbers of edges to add so that all vertices have the largest degree."""
    most = max(int(real.sum(axis=0).max(initial=0)), int(real.sum(axis=1).max(initial=0)))
    vertices = np.arange(len(real))
    rows, columns = np.repeat(vertices, most - real.sum(axis=1)), np.repeat(vertices, most - real.sum(axis=0))
    added = np.zeros_like(real)
    np.add.at(added, (rows, columns), 1)
    return added
