# SPDX-License-Identifier: Apache-2.0
"""The common result of every format's reader: one process's calls of collectives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundabout.core.errors import UsageError

Kind = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send", "receive"]


class RecordError(UsageError):
    """A record that cannot be read, or that lacks data for a profile."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one message, in which one process took part.

    `begin_ns` and `end_ns` are of the process's own host's clock, from any epoch. `payload_bytes` is the vector that
    the collective is about: of an all-gather what each has in the end, of a reduce-scatter what each has at first,
    of an all-to-all what each has, of messages what is sent. `group` is the communicator's name in the record, `number`
    counts the calls of its kind in it (None where the record does not), `rank` is this process's rank in it. `peer` is
    the other one's rank there, of messages, or the root's, of broadcasts and reduces; None of others.
    """

    kind: Kind
    group: str
    number: int | None
    rank: int
    ranks: int
    payload_bytes: int
    begin_ns: int
    end_ns: int
    peer: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one process.

    `rank` and `world` are of the whole job, None if the record lacks them; `members` are the global ranks of each
    group, in its order, if known. `steps_ns` are begins and ends of iterations that it names. `lost` is the number of
    calls that it reports as lost, or that its numbers leave out, and `losses` describe them, a sentence each. `notes`
    are further facts for a reader of the profile.
    """

    path: Path
    host: str | None
    rank: int | None
    world: int | None
    calls: tuple[Call, ...]
    members: dict[str, tuple[int, ...]]
    steps_ns: tuple[tuple[int, int], ...] = ()
    lost: int = 0
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
