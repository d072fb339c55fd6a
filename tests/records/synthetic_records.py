# SPDX-License-Identifier: Apache-2.0
"""Records of jobs that never ran: what each rank would have written of so many iterations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.records.call import Call, Kind, Record

MS = 1_000_000


@dataclass
class Made:
    """Collects calls of ranks on hosts whose clocks are ahead by `ahead_ns`, and who come late by `late_ns`."""

    ranks: int
    ahead_ns: Sequence[int] = ()
    late_ns: Sequence[int] = ()
    calls: dict[int, list[Call]] = field(default_factory=dict)

    def took(  # noqa: PLR0917 - what a call is
        self,
        kind: Kind,
        members: Sequence[int],
        number: int | None,
        size: int,
        begin_ns: int,
        last_ns: int,
        **more: int,
    ) -> None:
        """A collective of `members`, which takes so long from when the last one has come."""
        late = [self.late_ns[rank] if self.late_ns else 0 for rank in members]
        for place, rank in enumerate(members):
            ahead = self.ahead_ns[rank] if self.ahead_ns else 0
            begin, end = begin_ns + late[place] + ahead, begin_ns + max(late) + last_ns + ahead
            group = "-".join(map(str, members))
            call = Call(kind, group, number, place, len(members), size, begin, end, **more)
            self.calls.setdefault(rank, []).append(call)

    def message(self, sender: int, receiver: int, size: int, begin_ns: int, last_ns: int) -> None:
        """From one rank to another, in a group of all."""
        for kind, rank, peer in (("send", sender, receiver), ("receive", receiver, sender)):
            call = Call(kind, "all", None, rank, self.ranks, size, begin_ns, begin_ns + last_ns, peer)
            self.calls.setdefault(rank, []).append(call)

    def records(self, steps_ns: Sequence[tuple[int, int]] = (), lost: Mapping[int, int] | None = None) -> list[Record]:
        """One a rank."""
        return [
            Record(
                path=Path(f"rank{rank}.json"),
                host=None,
                rank=rank,
                world=self.ranks,
                calls=tuple(sorted(self.calls.get(rank, []), key=lambda call: call.begin_ns)),
                members={},
                steps_ns=tuple(steps_ns),
                lost=(lost or {}).get(rank, 0),
            )
            for rank in range(self.ranks)
        ]


def data_parallel(  # noqa: PLR0917 - what a job is
    ranks: int, size: int, period_ms: int = 100, send_ms: int = 40, iterations: int = 20, made: Made | None = None
) -> Made:
    """A job that computes, and then all-reduces in two buckets."""
    made = made or Made(ranks)
    for number in range(iterations):
        begin_ns = (number * period_ms + period_ms - send_ms) * MS
        for half in range(2):
            at_ns = begin_ns + half * send_ms * MS // 2
            made.took("all-reduce", range(ranks), 2 * number + half, size // 2, at_ns, send_ms * MS // 2)
    return made
