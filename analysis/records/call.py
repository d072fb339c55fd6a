# SPDX-License-Identifier: Apache-2.0
"""The common result of every format's reader: the calls of collectives of one process."""

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

    `begin_ns` and `end_ns` are read from the clock of the process's host, from any epoch. `payload_bytes` is the size
    of the whole vector: for an all-gather the result of each rank, for a reduce-scatter and an all-to-all the input of
    each rank, for a message the bytes sent. `group` is the communicator's name in the record, and `rank` the process's
    rank in it. `number` counts the calls of one kind in the group, None if the record does not. `peer` is the rank of a
    message's other end, or of the root of a broadcast or reduce; None for other kinds. `is_tree` is True for an
    all-reduce of which the record says that it goes along NCCL's trees. `sent_bytes` are the bytes that the process
    sends to others in an all-to-all whose split sizes are recorded, else None. `hosts` is the number of hosts of the
    group, None if the record lacks it.
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
    is_tree: bool = False
    sent_bytes: int | None = None
    hosts: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one process.

    `rank` and `world` are the process's rank in the job and the job's size, None if the record lacks them. `members`
    maps a group to the global ranks in its order, if known. `steps_ns` are begins and ends of the iterations that the
    record names. `lost` is the number of calls that the record reports as lost, or that are missing from its numbers.
    `losses` are sentences on these calls, and `hint` says how to record them, if the reader has a way. `notes` are
    further sentences for the profile.
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
    hint: str | None = None
    notes: tuple[str, ...] = ()
