# SPDX-License-Identifier: Apache-2.0
"""Advice on swaps of running workers: what a swap gains, after how long it has paid, and when to leave jobs alone.

Swaps are found as the scheduler variant `migrate` finds them (roundabout.models.cluster.swap_rule), from the demands
that counters show. The flow-level model then plays the jobs before and after, each worker sending to the next of its
job, from random starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.advice import expected_slowdown
from analysis.advice.errors import AdviceError
from analysis.advice.expected_slowdown import DrawnPhases, by_job, draw_phases, estimate, fluid_job, mean_ms
from analysis.advice.observed_jobs import ObservedJob
from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.phases import Estimate
from roundabout.models.cassini import Arc, Circle
from roundabout.models.cluster.placement import HostTree, host_tree_of
from roundabout.models.cluster.state import Placement, Placements
from roundabout.models.cluster.swap_rule import MIN_FALL, Swap, SwapSearch
from roundabout.models.fluid import FluidJob
from roundabout.models.fluid.cross_traffic import capacities
from roundabout.spec.errors import list_choices
from roundabout.spec.topology import Topology

MAX_SWAPS = 3
"""Largest number of swaps that are recommended one after the other."""

STARTS = 4
"""Number of random starts that a draw is the mean of. Jobs of equal periods may meet, or miss each other, for long."""

MIN_GAIN = 1.02
"""Least mean gain (a ratio of iteration times) for which a swap is advised; its whole interval must be above 1."""


@dataclass(frozen=True)
class SwapStep:
    """A swap after the ones before it, and the outlook of all of them together.

    `gain` is the mean over jobs of iteration times before over those after, and `gain_by_job` each job's. After
    `break_even_s` from the begin of the moves as much work is done as without them; None if that is never.
    """

    swap: Swap
    gain: Estimate
    gain_by_job: Mapping[str, Estimate]
    break_even_s: Estimate | None

    @property
    def is_advised(self) -> bool:
        """Return True if the gain is worth a move: it surely is one, and work that is lost comes back."""
        return self.gain.low > 1 and self.gain.value >= MIN_GAIN and self.break_even_s is not None


@dataclass(frozen=True)
class MigrationAdvice:
    """Swaps in their order, and the cost of a move. `cost` is each job's iteration time now over that alone.

    Without steps, `why` says why nothing should be moved.
    """

    move_s: float
    cost: Mapping[str, Estimate]
    steps: tuple[SwapStep, ...]
    why: str = ""

    @property
    def advised(self) -> tuple[SwapStep, ...]:
        """Return the steps up to the advised one with the largest gain."""
        good = [place for place, step in enumerate(self.steps) if step.is_advised]
        best = max(good, key=lambda place: self.steps[place].gain.value, default=-1)
        return self.steps[: best + 1]


def advise_migration(
    jobs: Sequence[ObservedJob], placements: Placements, topology: Topology, move_s: float, seed: int = 0
) -> MigrationAdvice:
    """Return the swaps that let jobs meet less, and what each gains.

    Args:
        jobs: the observed jobs. A job on one host sends nothing, whatever counters say.
        placements: the hosts of each job, each once; workers of a job on one host move together.
        topology: the map from flows to cables.
        move_s: time for which a moved job stands still, s.
        seed: seed of the draws.

    Raises:
        AdviceError: a host is unknown or has too many jobs, or flows between two hosts may take several paths.
    """
    topology = topology.model_copy(update={"gpus_per_host": 1})  # workers of a job on one host move together
    ground = _check(placements, topology)
    known = {each.job: each for each in jobs}
    unknown = [job for job, hosts in placements.items() if len(hosts) > 1 and not known[job].found]
    if unknown:
        return MigrationAdvice(move_s, {}, (), f"no advice for {unknown[0]}: {known[unknown[0]].reason}")
    placed = {job: tuple(sorted(hosts, key=ground.at.__getitem__)) for job, hosts in placements.items()}
    search = SwapSearch(ground, _ObservedDemands(ground, known), placed)
    swaps, stages = list[Swap](), [dict(search.placements)]
    for swap in search.swaps(MAX_SWAPS):
        swaps.append(swap)
        stages.append(dict(search.placements))
    times_ms = _play(known, stages, topology, seed)
    sending = [job for job, hosts in placed.items() if len(hosts) > 1]
    cost = by_job(sending, times_ms[:, 1] / times_ms[:, 0])
    steps = tuple(_step(sending, swaps[:count], times_ms, move_s) for count in range(1, len(swaps) + 1))
    why = "" if steps else f"no swap lowers the excess on jobs' worst links by {MIN_FALL:.2f} or more"
    return MigrationAdvice(move_s, cost, steps, why)


def _check(placements: Placements, topology: Topology) -> HostTree:
    if topology.routing and topology.hashes_flows:
        hint = "give the topology `routing: {name: static}`, with the cables that flows take"
        found = f"topology {topology.name}: found routing {topology.routing.name}"
        raise AdviceError(f"{found}, expected one path between two hosts", hint)
    for job, hosts in placements.items():
        if missing := [host for host in hosts if host not in topology.hosts]:
            expected = f"one of {list_choices(sorted(topology.hosts))}, the hosts of topology {topology.name}"
            raise AdviceError(f"job {job}: found host {missing[0]}, expected {expected}")
    ground = host_tree_of(topology)
    for host, free in zip(ground.hosts, ground.free(placements.values()), strict=True):
        if free < 0:
            raise AdviceError(
                f"host {host}: found {1 - free} jobs, expected one at most: counters cannot separate them"
            )
    return ground


class _ObservedDemands:
    """The demands of observed jobs on links, each worker sending to the next one of its job."""

    def __init__(self, ground: HostTree, known: Mapping[str, ObservedJob]) -> None:
        self._ground, self._known = ground, known

    def circles_of(self, job: str, placement: Placement) -> Mapping[str, Circle]:
        """Return a job's circle on each link that it crosses, in its busier direction."""
        flows: dict[tuple[str, bool], int] = {}
        for sender, receiver in _ring(placement):
            for crossed in self._ground.links_between(placement[sender], placement[receiver]):
                flows[crossed] = flows.get(crossed, 0) + 1
        busier: dict[str, int] = {}
        for (link, _), count in flows.items():
            busier[link] = max(busier.get(link, 0), count)
        if not busier:
            return {}
        circle = self._known[job].circle
        return {link: _multiply(circle, count) for link, count in busier.items()}


def _multiply(circle: Circle, by: int) -> Circle:
    return replace(circle, arcs=tuple(Arc(arc.begin_ms, arc.end_ms, by * arc.gbps) for arc in circle.arcs))


def _ring(placement: Placement) -> list[tuple[int, int]]:
    """Return the pairs of ranks of which one sends to the other; none for one host."""
    count = len(placement)
    return [(rank, (rank + 1) % count) for rank in range(count)] if count > 1 else []


def _play(known: Mapping[str, ObservedJob], stages: Sequence[Placements], topology: Topology, seed: int) -> Floats:
    """Return mean iteration times, ms: by draw, by stage (each job alone first), and by job that sends.

    A draw has the same figures, jitter and starts in all stages, and is the mean over its starts.
    """
    generator, rates = np.random.default_rng(seed), capacities(topology)
    sending = [job for job, hosts in stages[0].items() if len(hosts) > 1]
    found = []
    for _ in range(expected_slowdown.DRAWS):
        drawn = [draw_phases(known[job], generator) for job in sending]
        played = [
            [_fluid_job(each, stage[job], topology) for job, each in zip(sending, drawn, strict=True)]
            for stage in stages
        ]
        alone = [mean_ms([job], rates)[0] for job in played[0]]
        starts = [[generator.uniform(0, sum(ms for ms, _ in each.phases)) for each in drawn] for _ in range(STARTS)]
        found.append(
            [alone, *(np.mean([mean_ms(_begin_at(jobs, at), rates) for at in starts], axis=0) for jobs in played)]
        )
    return np.array(found)


def _begin_at(jobs: Sequence[FluidJob], starts_ms: Sequence[float]) -> list[FluidJob]:
    return [replace(job, start_ms=at_ms) for job, at_ms in zip(jobs, starts_ms, strict=True)]


def _fluid_job(drawn: DrawnPhases, placement: Placement, topology: Topology) -> FluidJob:
    """Return a job each of whose workers sends to the next one, on the topology's paths."""
    paths = [topology.directions(topology.path(placement[one], placement[other])) for one, other in _ring(placement)]
    return fluid_job(drawn.phases, paths, drawn.stretches)


def _step(names: Sequence[str], swaps: Sequence[Swap], times_ms: Floats, move_s: float) -> SwapStep:
    """Return the last swap with the outlook of all.

    Work counts in seconds of a job alone. Jobs that stand still lose what they would have done meanwhile; the others
    are taken to go on as before, which is too little, since links have fewer jobs.
    """
    alone, before, after = times_ms[:, 0], times_ms[:, 1], times_ms[:, 1 + len(swaps)]
    gain = before / after
    moved = {job for swap in swaps for job in swap.moved}
    idle = len(moved.difference(names))  # jobs that do not send, and are never slowed down
    lost = move_s * (idle + sum((alone / before)[:, place] for place, job in enumerate(names) if job in moved))
    won_per_s = (alone / after - alone / before).sum(axis=1)
    break_even_s = None if (won_per_s <= 0).any() else estimate(move_s + lost / won_per_s)
    return SwapStep(swaps[-1], estimate(gain.mean(axis=1)), by_job(names, gain), break_even_s)
