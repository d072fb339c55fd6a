# SPDX-License-Identifier: Apache-2.0
"""The rules that choose the switches of flows, by name, for a leaf-spine and for three tiers."""

from collections.abc import Callable
from typing import NamedTuple

from roundabout.models.cluster.job_queue.fabric import Tiers
from roundabout.models.cluster.job_queue.job_shape import Ints
from roundabout.models.cluster.job_queue.spines import Flows, colored_spines, hash_spines, least_loaded_spines
from roundabout.models.cluster.job_queue.three_tiers import colored_hops, hash_hops, least_loaded_hops


class SpineRule(NamedTuple):
    """A rule that chooses spines from flows, the number of spines and a seed, and in three tiers all switches.

    If it `is_dynamic`, the engine then chooses other spines as flows start and as links fill. Without `choose_hops` it
    suits no three tiers.
    """

    choose: Callable[[Flows, int, int], Ints]
    choose_hops: Callable[[Flows, Tiers, int], Ints] | None = None
    is_dynamic: bool = False


RULES = {
    "hash": SpineRule(hash_spines, hash_hops),
    "crux": SpineRule(least_loaded_spines, least_loaded_hops),
    "perfect": SpineRule(colored_spines, colored_hops),
    "sglb": SpineRule(hash_spines, is_dynamic=True),
}
