# SPDX-License-Identifier: Apache-2.0
"""Communication patterns (docs/reference/patterns.md) of a job's exchanges.

Each pattern has its groups of workers, and the bytes that a worker sends.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.records.call import Kind, RecordError
from analysis.records.job import Exchange, Job
from roundabout.spec.patterns import Pattern

SMALL = 0.01
"""Least share of all bytes that a family must have; smaller families are left out. A guess."""
ALIKE = 0.1
"""Groups whose bytes differ by less than this share count as parallel groups of one family."""

PATTERN_OF: dict[Kind, Pattern] = {
    "all-reduce": "ring",
    "all-gather": "ring",
    "reduce-scatter": "ring",
    "all-to-all": "all-to-all",
    "broadcast": "pipeline",
    "reduce": "pipeline",
    "send": "pipeline",
}
"""The pattern of each kind of collective, as NCCL's rings send it: broadcasts and reduces pass all bytes along a chain.
All-reduces that go along trees have the pattern `tree`.
"""
Members = tuple[int, ...]


@dataclass(frozen=True)
class CollectiveFamily:
    """The exchanges of one pattern in parallel groups.

    `kinds` are the kinds of exchanges, and `bytes` is a worker's total as a profile's phase of the pattern gives it.
    `members` are the ranks of the family's exchanges; for messages these are pairs within `groups`.
    """

    pattern: Pattern
    groups: tuple[Members, ...]
    kinds: tuple[Kind, ...]
    members: frozenset[Members]
    bytes: int

    def contains(self, exchange: Exchange) -> bool:
        """Return True if the exchange belongs to the family."""
        is_alike = exchange.kind in self.kinds and pattern_of(exchange) == self.pattern
        return is_alike and exchange.members in self.members

    def seen_by(self, worker: int) -> frozenset[Members]:
        """Return the members of the exchanges whose bytes count for a worker.

        For messages these are exchanges in which the worker sends, or, if there are none, in which it receives.

        A worker within a chain therefore counts the bytes that it passes on once, and the last worker those that it
        receives.
        """
        if self.kinds != ("send",):
            return frozenset(each for each in self.members if worker in each)
        sent = frozenset(each for each in self.members if each[0] == worker)
        return sent or frozenset(each for each in self.members if worker in each)


def groups_of(family: CollectiveFamily, job: Job) -> tuple[Members, ...] | None:
    """Return the family's groups, or None if they are one of all ranks in their order."""
    return None if family.groups == (tuple(range(len(job.records))),) else family.groups


def pattern_of(exchange: Exchange) -> Pattern:
    """Return the pattern in which an exchange sends its bytes."""
    return "tree" if exchange.is_tree else PATTERN_OF[exchange.kind]


def sent_bytes(exchange: Exchange) -> int:
    """Return the `bytes` of an exchange, as its pattern defines them: what each worker sends, but the vector of a tree.

    In a ring of n an all-reduce sends 2(n-1)/n of the vector, an all-gather or a reduce-scatter (n-1)/n, as does an
    all-to-all (NVIDIA/nccl-tests, doc/PERFORMANCE.md); broadcasts, reduces and messages all of it. An all-to-all with
    split sizes sends what these say.
    """
    if exchange.sent_bytes is not None:
        return exchange.sent_bytes
    if exchange.is_tree:
        return exchange.payload_bytes
    return worker_bytes(exchange.kind, len(exchange.members), exchange.payload_bytes)


def worker_bytes(kind: Kind, ranks: int, payload_bytes: int) -> int:
    """Return the bytes that each of `ranks` sends in a ring, or to all others; `payload_bytes` as in `Call`."""
    if kind == "all-reduce":
        return round(2 * (ranks - 1) / ranks * payload_bytes)
    if kind in ("all-gather", "reduce-scatter", "all-to-all"):
        return round((ranks - 1) / ranks * payload_bytes)
    return payload_bytes


def find_families(job: Job) -> tuple[list[CollectiveFamily], list[CollectiveFamily]]:
    """Return a job's families, the largest first, and the families that are left out as too small.

    Raises RecordError if no bytes are exchanged, or if messages form no chains (see `_chains`).
    """
    found = [*_parallel_groups(job.exchanges), *_pipelines(job)]
    total = sum(each.bytes for each in found)
    if not total:
        raise RecordError(
            f"{job.file_names}: found exchanges of no bytes between workers, expected some: groups of one send nothing"
        )
    kept = sorted((each for each in found if each.bytes >= SMALL * total), key=lambda each: -each.bytes)
    return kept, [each for each in found if 0 < each.bytes < SMALL * total]


def _parallel_groups(exchanges: Sequence[Exchange]) -> list[CollectiveFamily]:
    """Return families of collectives: groups without common workers that send equally much."""
    sums: dict[tuple[Pattern, Members], int] = defaultdict(int)
    kinds: dict[tuple[Pattern, Members], set[Kind]] = defaultdict(set)
    for each in exchanges:
        if each.kind != "send":
            key = pattern_of(each), each.members
            sums[key] += sent_bytes(each)
            kinds[key].add(each.kind)
    found: list[tuple[Pattern, set[Kind], list[Members], int]] = []
    for (pattern, members), size in sums.items():
        here = kinds[pattern, members]
        for family in found:
            if family[:2] == (pattern, here) and _fits_pattern(members, size, family[2], family[3]):
                family[2].append(members)
                break
        else:
            found.append((pattern, here, [members], size))
    return [
        CollectiveFamily(pattern, tuple(sorted(groups)), tuple(sorted(kinds)), frozenset(groups), size)
        for pattern, kinds, groups, size in found
    ]


def _fits_pattern(members: Members, size: int, groups: Iterable[Members], usual: int) -> bool:
    apart = all(not set(members) & set(group) and len(members) == len(group) for group in groups)
    return apart and abs(size - usual) <= ALIKE * usual


def _pipelines(job: Job) -> list[CollectiveFamily]:
    """Return families of messages: chains of workers, one family towards higher ranks and one towards lower ones."""
    sums: Counter[Members] = Counter()
    for each in job.exchanges:
        if each.kind == "send":
            sums[each.members] += each.payload_bytes
    ways = ([edge for edge in sums if edge[0] < edge[1]], [edge for edge in sums if edge[0] > edge[1]])
    return [_pipeline(edges, sums, job.file_names) for edges in ways if edges]


def _pipeline(edges: Sequence[Members], sums: Mapping[Members, int], whose: str) -> CollectiveFamily:
    sizes = sorted(sums[edge] for edge in edges)
    usual = sizes[len(sizes) // 2]
    if sizes[-1] - sizes[0] > ALIKE * usual:
        what = f"messages of {sizes[0] / 1e6:.1f} to {sizes[-1] / 1e6:.1f} MB between pairs of ranks"
        raise RecordError(
            f"{whose}: found {what}, expected as much between all: "
            "no pattern of docs/reference/patterns.md says otherwise"
        )
    return CollectiveFamily("pipeline", _chains(edges, whose), ("send",), frozenset(edges), usual)


def _chains(edges: Sequence[Members], whose: str) -> tuple[Members, ...]:
    """Return the chains that pairs of sender and receiver make. Raises RecordError if they make none."""
    after = {sender: receiver for sender, receiver in edges}  # noqa: C416 - of tuples of any length
    if len(after) < len(edges) or len(set(after.values())) < len(edges):
        expected = "expected chains, as of a pipeline: no pattern of docs/reference/patterns.md says otherwise"
        found = f"messages in which a rank sends to, or receives from, several ({edges})"
        raise RecordError(f"{whose}: found {found}, {expected}")
    chains = []
    for first in sorted(set(after) - set(after.values())):
        chain = [first]
        while chain[-1] in after:
            chain.append(after[chain[-1]])
        chains.append(tuple(chain))
    return tuple(chains)
