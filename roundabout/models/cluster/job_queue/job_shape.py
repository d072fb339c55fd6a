# SPDX-License-Identifier: Apache-2.0
"""The flows of a job's iteration between its workers, and the iteration's time alone."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from roundabout.spec.job_mix import JobType

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BACKWARD = 0.65
"""Share of a microbatch's computing that is its backward pass: 111 of 171 ms, and 56 of 86, in MonkeyTree's jobs."""


@dataclass(frozen=True)
class Step:
    """A phase of an iteration: the numbers of its flows, and its time alone; without flows it is computing."""

    alone_ms: float
    flows: Ints
    flow_bytes: float = 0.0


@dataclass(frozen=True, eq=False)
class JobShape:
    """A job on a number of GPUs: the flows of an iteration between its ranks, and its phases."""

    kind: JobType
    gpus: int
    bytes_per_ms: float  # of a NIC

    @cached_property
    def rings(self) -> Ints:
        """Return the senders and receivers of the rings' flows, an array (2, flows); without flows for rings of one."""
        group = self.gpus // self.kind.stages
        if group <= self.kind.rings:
            return np.empty((2, 0), np.int64)
        ranks = np.arange(self.gpus)
        return np.array([ranks, ranks // group * group + (ranks % group + self.kind.rings) % group])

    @cached_property
    def others(self) -> Ints:
        """Return the senders and receivers of the other flows: to the next stage and back, or of an all-to-all."""
        ranks, group = np.arange(self.gpus), self.gpus // self.kind.stages
        if self.kind.stages > 1:
            forth = np.array([ranks[:-group], ranks[group:]])
            return np.concatenate([forth, forth[::-1]], axis=1)
        if self.kind.exchanges:
            return np.argwhere(~np.eye(self.gpus, dtype=bool)).T
        return np.empty((2, 0), np.int64)

    @cached_property
    def flows(self) -> Ints:
        """Return the senders and receivers of all flows, sender by sender; rings last within each."""
        return np.concatenate([self.others, self.rings], axis=1)[:, self._order]

    @cached_property
    def are_rings(self) -> Bools:
        """Return which flows are of rings."""
        found: Bools = self._order >= self.others.shape[1]
        return found

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(np.concatenate([self.others[0], self.rings[0]]), kind="stable")

    @cached_property
    def nic_loads(self) -> Ints:
        """Return, for each flow, how many earlier ones its busier NIC has."""
        found: Ints = np.max([_earlier(ranks) for ranks in self.flows], axis=0)
        return found

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Return the phases of an iteration."""
        kind, none = self.kind, np.empty(0, np.int64)
        others, rings = np.flatnonzero(~self.are_rings), np.flatnonzero(self.are_rings)
        if kind.exchanges:
            found = [Step(kind.compute_ms, none), *self._rounds(others)] * kind.exchanges
        else:
            # GPipe: a stage waits for the first microbatch to reach it, and for the last to come back.
            found = [Step(kind.compute_ms * (kind.microbatches + kind.stages - 1), none)]
            sent = kind.activation_bytes * kind.microbatches
            if kind.stages > 1:
                # Computing waits for the activations before it, in turn: of the microbatches, and of other stages.
                turns = kind.microbatches + kind.stages - 2
                alone_ms = kind.activation_bytes * turns / self.bytes_per_ms
                are_forth = self.flows[0, others] < self.flows[1, others]
                found += [Step(alone_ms, others[half], sent) for half in (are_forth, ~are_forth)]
        if len(rings):
            ring = self.gpus // kind.stages // kind.rings
            sent = 2 * (ring - 1) / ring * kind.ring_bytes
            found.append(Step(sent / self.bytes_per_ms, rings, sent))
        return tuple(found)

    def _rounds(self, others: Ints) -> list[Step]:
        """Return the rounds of an all-to-all: in round r each worker sends to the r-th one after it."""
        senders, receivers = self.flows[:, others]
        sent = self.kind.exchange_bytes / self.gpus / (self.gpus - 1)
        rounds = [others[(receivers - senders) % self.gpus == each] for each in range(1, self.gpus)]
        return [Step(sent / self.bytes_per_ms, each, sent) for each in rounds]

    @cached_property
    def alone_ms(self) -> float:
        """Return the time of an iteration in which nothing delays the job, ms."""
        return sum(step.alone_ms for step in self.steps)

    @property
    def full_ms(self) -> float:
        """Return an iteration's time alone without the bubbles of its pipeline, of which a load is made, ms."""
        if self.kind.stages == 1:
            return self.alone_ms
        turns_ms = 2 * (self.kind.stages - 2) * self.kind.activation_bytes / self.bytes_per_ms
        return self.alone_ms - self.kind.compute_ms * (self.kind.stages - 1) - turns_ms

    @cached_property
    def intensity_ms(self) -> float:
        """Return the time of computing and of sending in an iteration of all workers together, ms."""
        bubbles_ms = self.kind.compute_ms * (self.kind.stages - 1)
        computes_ms = sum(step.alone_ms for step in self.steps if not len(step.flows)) - bubbles_ms
        sent = sum(len(step.flows) * step.flow_bytes for step in self.steps)
        return self.gpus * computes_ms + sent / self.bytes_per_ms


def _earlier(ranks: Ints) -> Ints:
    """Return how often each rank occurs before."""
    return np.array([np.count_nonzero(ranks[:place] == rank) for place, rank in enumerate(ranks)], np.int64)


@lru_cache(maxsize=4096)
def shape_of(kind: JobType, gpus: int, bytes_per_ms: float) -> JobShape:
    """Return the shape of a type's job on this number of GPUs, which is cached."""
    return JobShape(kind, gpus, bytes_per_ms)
