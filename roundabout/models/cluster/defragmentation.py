# SPDX-License-Identifier: Apache-2.0
"""Moves of running workers, as few as possible, after which few jobs reach beyond each rack.

A fragment is a job's workers in a rack while the job has workers in other racks, too. A ring sends one flow out of a
rack for each fragment. Source: MonkeyTree (arXiv 2602.08296) and its simulator (hipersys-team/MonkeyTree).
docs/reference/schedulers.md says which of the rules is from where, and what is a guess.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roundabout.models.cluster.placement import HostTree, Ints, host_tree_of
from roundabout.models.cluster.state import Placements, State

Bools = npt.NDArray[np.bool_]

MAX_NODES = 1000
"""Largest number of nodes of the search for the fewest moves. A time limit would give other answers on other machines.

The best placements so far are taken when it is reached. A smaller limit can cost moves, and a larger one takes longer.
"""


def limit_fragments(state: State, placements: Placements, most: int) -> Placements:
    """Return placements with at most `most` fragments in each rack, for which as few workers as possible move.

    Only jobs with workers in several racks are moved, to free GPUs or to each other's, and no job that stands still
    after a move. Return `placements` if no rack has more, or if there is no such placement.
    """
    ground = host_tree_of(state.topology)
    inside = _rack_hosts(ground)
    counts = {job: inside @ ground.gpus_of(hosts) for job, hosts in placements.items()}
    spread = {job: own for job, own in counts.items() if np.count_nonzero(own) > 1}
    still = {job.request.name for job in state.jobs if job.resumes_s is not None}
    moving = [job for job in spread if job not in still]
    fragments = np.sum([own > 0 for own in spread.values()], axis=0)
    if not moving or fragments.max() <= most:
        return placements
    present = np.array([spread[job] for job in moving])
    free = ground.free(hosts for job, hosts in placements.items() if job not in moving)
    wanted = fewest_moves(present, inside @ free, most - fragments + np.count_nonzero(present, axis=0))
    if wanted is None:
        return placements
    gpus = _move_workers(np.array([ground.gpus_of(placements[job]) for job in moving]), free, inside, wanted)
    changed = (wanted != present).any(axis=1)
    moved = {job: ground.placement(own) for job, own, is_moved in zip(moving, gpus, changed, strict=True) if is_moved}
    return {job: moved.get(job, hosts) for job, hosts in placements.items()}


class PodBound(NamedTuple):
    """The pod of each rack, and the most fragments in each pod: parts of jobs that have workers in others, too."""

    of_rack: Ints
    most: Ints


def fewest_moves(
    present: Ints, room: Ints, most: Ints, weights: Ints | None = None, pods: PodBound | None = None
) -> Ints | None:
    """Return the number of each job's workers in each rack after as few moves of workers as possible.

    Return None if there are no such numbers, or if the search finds none within its limit.

    Args:
        present: the numbers before, with a row for each job and a column for each rack.
        room: the GPUs of each rack that these jobs can have.
        most: the most fragments of these jobs in each rack.
        weights: the fragments for which one of each job counts; default: one.
        pods: a bound of fragments in pods of racks, too, if any.
    """
    from scipy import sparse  # noqa: PLC0415 - slow to import, and no other rule of clusters needs it
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    (jobs, racks), pairs = present.shape, present.size
    workers = present.sum(axis=1)
    of_job = np.repeat(workers, racks).astype(float)
    by_job = sparse.kron(sparse.eye_array(jobs), np.ones((1, racks)))
    by_rack = sparse.kron(np.ones((1, jobs)), sparse.eye_array(racks))
    weighted = by_rack if weights is None else sparse.kron(weights[None, :], sparse.eye_array(racks))
    pair, whole, part = sparse.eye_array(pairs), sparse.diags_array(of_job), sparse.diags_array(of_job - 1)
    # Four variables of each job and rack: workers, 1 if they are a fragment, 1 if they are the whole job, and leavers.
    rules = [
        [by_job, None, None, None],
        [by_rack, None, None, None],
        [None, weighted, None, None],
        [pair, -part, -whole, None],  # no workers without a fragment or the whole job, and no fragment is whole
        [pair, None, -whole, None],
        [pair, None, None, pair],
    ]
    least = np.concatenate([workers, np.full(2 * racks + pairs, -np.inf), np.zeros(pairs), present.ravel()])
    bound = np.concatenate([workers, room, most, np.zeros(pairs), np.full(2 * pairs, np.inf)])
    numbers = [pairs] * 4
    if pods is not None:
        # Two more variables of each job and pod, as those of racks: 1 if it has a fragment, and 1 if the whole job.
        areas = jobs * pods.most.size
        inside = sparse.kron(sparse.eye_array(jobs), np.arange(pods.most.size)[:, None] == pods.of_rack)
        in_pod = np.repeat(workers, pods.most.size).astype(float)
        by_pod = sparse.kron((np.ones(jobs) if weights is None else weights)[None, :], sparse.eye_array(pods.most.size))
        part, whole = sparse.diags_array(in_pod - 1), sparse.diags_array(in_pod)
        rules = [[*row, None, None] for row in rules]
        rules += [
            [None, None, None, None, by_pod, None],
            [inside, None, None, None, -part, -whole],
            [inside, None, None, None, None, -whole],
        ]
        least = np.concatenate([least, np.full(pods.most.size + areas, -np.inf), np.zeros(areas)])
        bound = np.concatenate([bound, pods.most, np.zeros(areas), np.full(areas, np.inf)])
        numbers += [areas] * 2
    count = len(numbers)
    found = milp(
        c=np.repeat([0, 0, 0, 1, 0, 0][:count], numbers),
        integrality=np.repeat([1, 1, 1, 0, 1, 1][:count], numbers),
        bounds=Bounds(0, np.repeat([np.inf, 1, 1, np.inf, 1, 1][:count], numbers)),
        constraints=LinearConstraint(sparse.block_array(rules), least, bound),
        options={"node_limit": MAX_NODES},
    )
    return None if found.x is None else np.rint(found.x[:pairs]).astype(int).reshape(jobs, racks)


def _rack_hosts(ground: HostTree) -> Bools:
    """Return, for each rack, which hosts of the line are in it."""
    racks = np.array([ground.racks[host] for host in ground.hosts])
    return np.array([racks == rack for rack in dict.fromkeys(racks.tolist())])


def _move_workers(gpus: Ints, free: Ints, inside: Bools, wanted: Ints) -> Ints:
    """Return the number of each job's GPUs on each host for these numbers in racks.

    In each rack a job keeps its first GPUs of the line, and further ones are the first free ones.

    Args:
        gpus: the numbers before, with a row for each job and a column for each host.
        free: the GPUs of each host that these jobs can have.
        inside: the hosts of each rack.
        wanted: the numbers of each job's GPUs in each rack.
    """
    kept = np.array([_first(own, inside, counts) for own, counts in zip(gpus, wanted, strict=True)])
    left = free - kept.sum(axis=0)
    for job, counts in enumerate(wanted):
        more = _first(left, inside, counts - inside @ kept[job])
        kept[job] += more
        left -= more
    return kept


def _first(gpus: Ints, inside: Bools, counts: Ints) -> Ints:
    """Return the first `counts` of these GPUs in each rack, or as many as there are."""
    in_rack = inside * gpus
    taken = np.minimum(in_rack, np.maximum(counts[:, None] - (in_rack.cumsum(axis=1) - in_rack), 0))
    found: Ints = taken.sum(axis=0)
    return found
