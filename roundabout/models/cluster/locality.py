# SPDX-License-Identifier: Apache-2.0
"""The nearness of workers that a scheduler distinguishes.

Schedulers differ in their knowledge of a network. In the interleaving thesis (section 4.4.2) Themis has one slowdown
within a rack and one across racks. Pollux's allocations are GPUs by server (OSDI 2021, section 4.2).
"""

import random
from typing import Literal

from roundabout.models.cluster.placement import HostTree, Ints
from roundabout.models.cluster.state import Placement

Locality = Literal["packed", "rack", "host"]
"""The nearness that a scheduler distinguishes.

`packed` prefers the lowest switch above all workers. `rack` distinguishes a server, a rack, and any hosts across racks.
`host` distinguishes a server and any hosts.
"""

LEVELS: dict[Locality, int] = {"rack": 2, "host": 1}
"""Least height of the subtrees in which all placements are alike; a host has height 0, and a rack height 1."""


def view_by_locality(ground: HostTree, locality: Locality, rng: random.Random) -> HostTree:
    """Return the cluster as a scheduler of this locality sees it."""
    return ground if locality == "packed" else CoarseTree(ground, LEVELS[locality], rng)


class CoarseTree(HostTree):
    """A view of a cluster in which all subtrees of height `alike` or more are equally near.

    `rng` draws the GPUs of a job that no lower subtree has room for.
    """

    def __init__(self, ground: HostTree, alike: int, rng: random.Random) -> None:
        vars(self).update(vars(ground))
        self._alike, self._rng = alike, rng

    def pack(self, free: Ints, workers: int, rng: random.Random | None = None) -> Placement:
        """Take `workers` GPUs from `free`, in a subtree that is lower than `alike` if one has room, else any."""
        if self.most_free(free, self._alike) >= workers:
            return super().pack(free, workers, rng)
        return self.scatter(free, workers, rng or self._rng)

    def grow(self, free: Ints, placement: Placement, workers: int) -> Placement:
        """Return an enlarged placement, with near GPUs if it stays in a subtree lower than `alike`, else with any."""
        more = workers - len(placement)
        if self.most_free(free, self._alike, placement) >= more:
            return super().grow(free, placement, workers)
        return self.placement(self.gpus_of(placement) + self.gpus_of(self.scatter(free, more, self._rng)))
