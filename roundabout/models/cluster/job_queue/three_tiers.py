# SPDX-License-Identifier: Apache-2.0
"""Rules that choose the switches of each flow between two leaves of three tiers.

They return an array (3, flows): the aggregation switch of the sender's pod, the core switch, and the aggregation switch
of the receiver's pod. Within a pod the last two are -1 and the first one.
Source: MonkeyTree's simulator (hipersys-team/MonkeyTree, src/fat and src/routing/ecmp.rs).
"""

import numpy as np

from roundabout.models.cluster.job_queue.fabric import Tiers
from roundabout.models.cluster.job_queue.job_shape import Bools, Ints
from roundabout.models.cluster.job_queue.spines import Flows, color_edges, hash_spines


def hash_hops(flows: Flows, tiers: Tiers, seed: int) -> Ints:
    """Choose each switch by a hash of its own, as ECMP does."""
    sizes = tiers.aggs, tiers.cores, tiers.aggs
    found = np.array([hash_spines(flows, size, 3 * seed + tier) for tier, size in enumerate(sizes)])
    return _within_pods(found, _pods(flows, tiers))


def least_loaded_hops(flows: Flows, tiers: Tiers, seed: int) -> Ints:
    """Choose, job by job, the first path with the fewest flows on its busiest link: Crux' paths.

    A path has the NICs' links, too, so that paths are alike which have no more flows than these.
    """
    del seed
    leaves, pods = tiers.pod_of_leaf.size, int(tiers.pod_of_leaf.max()) + 1
    up, down = np.zeros((leaves, tiers.aggs), np.int64), np.zeros((leaves, tiers.aggs), np.int64)
    to_core, from_core = np.zeros((2, pods, tiers.aggs, tiers.cores), np.int64)
    found = np.full((3, flows.jobs.size), -1, np.int64)
    for place, (leaf, other) in enumerate(flows.leaves.T):
        pod, other_pod = tiers.pod_of_leaf[leaf], tiers.pod_of_leaf[other]
        if pod == other_pod:
            agg = last = np.maximum(np.maximum(up[leaf], down[other]), flows.nic_loads[place]).argmin()
            found[:, place] = agg, -1, agg
        else:
            # Paths are in the order of the first aggregation switch, the core switch, and the last one.
            climb = np.maximum(up[leaf][:, None], to_core[pod])
            descent = np.maximum(from_core[other_pod], down[other][:, None]).T
            loads = np.maximum(np.maximum(climb[:, :, None], descent), flows.nic_loads[place])
            agg, core, last = np.unravel_index(loads.argmin(), loads.shape)
            to_core[pod, agg, core] += 1
            from_core[other_pod, last, core] += 1
            found[:, place] = agg, core, last
        up[leaf, agg] += 1
        down[other, last] += 1
    return found


def colored_hops(flows: Flows, tiers: Tiers, seed: int) -> Ints:
    """Color rings' flows pod by pod for aggregation switches, and all between pods for core switches.

    In a pod's graph of leaves all flows that leave it have one receiver, and all that enter it one sender. In the graph
    for core switches leaves are those of the same number in all pods. Flows of no ring take turns.
    """
    del seed
    pods = _pods(flows, tiers)
    local = _local_leaves(tiers)[flows.leaves]
    found = np.full((3, flows.jobs.size), -1, np.int64)
    crosses = pods[0] != pods[1]
    outside = int(local.max(initial=-1)) + 1
    for pod in np.unique(pods):
        own = np.flatnonzero(flows.are_rings & (pods == pod).any(axis=0))
        is_inside = pods[:, own] == pod
        # The graph's vertices after the leaves: the receiver of flows that leave, and the sender of those that enter.
        ends = np.where(is_inside, local[:, own], np.array([[outside + 1], [outside]]))
        colors = color_edges(ends) % tiers.aggs
        found[0, own[is_inside[0]]] = colors[is_inside[0]]
        found[2, own[is_inside[1]]] = colors[is_inside[1]]
    between = np.flatnonzero(flows.are_rings & crosses)
    found[1, between] = color_edges(local[:, between]) % tiers.cores
    for is_between in (False, True):
        _take_turns(found, flows, np.flatnonzero(~flows.are_rings & (crosses == is_between)), tiers)
    return _within_pods(found, pods)


def _take_turns(found: Ints, flows: Flows, others: Ints, tiers: Tiers) -> None:
    """Let flows take switches in turn, those of a pair of NICs the same ones."""
    pairs = flows.nics[:, others].T
    first, pair_of = np.unique(pairs, axis=0, return_index=True, return_inverse=True)[1:]
    turns = np.argsort(np.argsort(first))[pair_of.ravel()]
    found[:, others] = turns % tiers.aggs, turns % tiers.cores, turns % tiers.aggs


def _within_pods(hops: Ints, pods: Ints) -> Ints:
    """Return the hops without core switches for flows within a pod, which go down from where they went up."""
    is_within: Bools = pods[0] == pods[1]
    hops[1, is_within] = -1
    hops[2, is_within] = hops[0, is_within]
    return hops


def _pods(flows: Flows, tiers: Tiers) -> Ints:
    """Return the pods of senders and receivers, an array (2, flows)."""
    pods: Ints = tiers.pod_of_leaf[flows.leaves]
    return pods


def _local_leaves(tiers: Tiers) -> Ints:
    """Return the number of each leaf within its pod."""
    pods = tiers.pod_of_leaf
    return np.array([np.count_nonzero(pods[:place] == pod) for place, pod in enumerate(pods)], np.int64)
