# SPDX-License-Identifier: Apache-2.0
"""Reads what PyTorch's profiler (Kineto) writes of one rank: a trace in Chrome's JSON, of NCCL or of gloo.

Of what a call leaves in a trace one kind is counted: kernels, which run when bytes go; without them gloo's own events;
never `c10d::...`, `nccl:...` and `record_param_comms`, which tell when a call was asked for.
"""

import ast
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.files import opened

NAME = "PyTorch Kineto's trace"
KERNELS = ("ncclDevKernel", "ncclKernel")
GLOO, STEP = "gloo:", "ProfilerStep#"
RECORD = "record_shapes=True, on GPUs with ProfilerActivity.CUDA, after init_process_group"

KINDS: dict[str, Kind | None] = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "allgatherbase": "all-gather",
    "allgathersingle": "all-gather",
    "allgatherintotensor": "all-gather",
    "reducescatter": "reduce-scatter",
    "reducescatterbase": "reduce-scatter",
    "reducescattersingle": "reduce-scatter",
    "reducescattertensor": "reduce-scatter",
    "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
    "alltoallbase": "all-to-all",
    "alltoallsingle": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "send": "send",
    "recv": "receive",
    "barrier": None,
    "wait": None,
    "init": None,
    "end": None,
}
"""By what PyTorch calls it, without strokes and `coalesced`; None for what moves nothing to speak of."""
SIZES = {
    **dict.fromkeys(("double", "long", "longint", "int64", "float64", "complexfloat"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "shortint", "float16", "int16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "signedchar", "unsignedchar", "uint8", "int8"), 1),
    **dict.fromkeys(("float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz"), 1),
}
"""Bytes of a number, by its type's name."""


def recognises(head: bytes) -> bool:
    """See `formats.Format`."""
    return head.lstrip().startswith(b"{") and any(each in head for each in (b'"traceEvents"', b'"deviceProperties"'))


def read(path: Path) -> Record:
    """See `formats.Format`. The whole file is held in memory."""
    trace = _trace(path)
    told = trace.get("distributedInfo")
    if not isinstance(told, dict) or not all(isinstance(told.get(each), int) for each in ("rank", "world_size")):
        what = "no distributedInfo with rank and world_size: the trace does not say whose it is"
        raise RecordError(f"{path}: found {what}", "begin profiling after torch.distributed.init_process_group")
    reading = _Reading(path, trace, told["rank"], told["world_size"])
    calls = tuple(sorted(reading.calls(), key=lambda call: call.begin_ns))
    if not calls:
        found = "; ".join(reading.notes()) or "nothing of NCCL's kernels or gloo's events"
        raise RecordError(
            f"{path}: found no call of a collective that says its bytes: {found}", f"record with {RECORD}"
        )
    host = trace.get("host_name")
    return Record(
        path=path,
        host=host if isinstance(host, str) else None,
        rank=told["rank"],
        world=told["world_size"],
        calls=calls,
        members=reading.members,
        steps_ns=tuple(reading.steps()),
        lost=reading.left_out.total() + reading.posted,
        notes=tuple(reading.notes()),
    )


def _trace(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        try:
            trace = json.load(file)
        except ValueError as error:
            raise RecordError(f"{path}: found no JSON ({error}), expected {NAME}, whole") from error
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise RecordError(f"{path}: found no list traceEvents, expected {NAME}")
    return trace


class _Event(NamedTuple):
    """One call as a trace has it: its name in PyTorch, its arguments, and when it was at work."""

    name: str
    args: Mapping[str, Any]
    begin_ns: int
    end_ns: int


class _Reading:
    """One trace, while it is read. `left_out` counts calls that do not say what they moved, by their names."""

    def __init__(self, path: Path, trace: dict[str, Any], rank: int, world: int) -> None:
        self._path, self._rank, self._world = path, rank, world
        self._base_ns = int(trace.get("baseTimeNanoseconds", 0))
        events = [each for each in trace["traceEvents"] if isinstance(each, dict) and each.get("ph") == "X"]
        self._named = [(each, str(each.get("name", ""))) for each in events]
        self._configured = _configured(trace["distributedInfo"])
        self.members: dict[str, tuple[int, ...]] = {}
        self.left_out: Counter[str] = Counter()
        self.posted = 0

    def calls(self) -> Iterator[Call]:
        """Of kernels; without them, of gloo."""
        kernels = [(each, name) for each, name in self._named if name.startswith(KERNELS)]
        for each, name in kernels:
            args = each.get("args", {})
            yield from self._call(_event(each, args.get("Collective name", ""), self._base_ns), name, self._of_kernel)
        if not kernels:
            yield from self._of_gloos()

    def _of_gloos(self) -> Iterator[Call]:
        found = [(each, name) for each, name in self._named if name.startswith(GLOO)]
        if found and len(self._configured) > 1:
            names = ", ".join(self._configured)
            what = f"gloo's events and the process groups {names}: its events do not say of which group they are"
            raise RecordError(f"{self._path}: found {what}, expected one group", "record with NCCL, which does")
        for each, name in found:
            event = _event(each, name.removeprefix(GLOO), self._base_ns)
            if KINDS.get(_plain(event.name)) in ("send", "receive"):
                self.posted += 1  # the event ends when the message is posted, not when it has gone
            else:
                yield from self._call(event, name, self._of_gloo)

    def _call(self, event: _Event, name: str, read: Any) -> Iterator[Call]:
        """The call, unless it moves nothing; counted as left out where it does not say what it moves."""
        try:
            kind = KINDS[_plain(event.name)]
            if kind:
                yield read(kind, event)
        except (KeyError, ValueError, TypeError, IndexError, SyntaxError):
            self.left_out[name.split("(", maxsplit=1)[0]] += 1

    def _of_kernel(self, kind: Kind, event: _Event) -> Call:
        args = event.args
        given, taken = int(args["In msg nelems"]), int(args["Out msg nelems"])
        ranks, group = int(args["Group size"]), str(args.get("Process Group Name", "0"))
        members = self._known(group, args.get("Process Group Ranks"), ranks)
        peer = {"send": "Dst Rank", "receive": "Src Rank", "broadcast": "Root Rank", "reduce": "Root Rank"}.get(kind)
        return Call(
            kind=kind,
            group=group,
            number=int(args["Seq"]) if "Seq" in args else None,
            rank=members.index(self._rank),
            ranks=ranks,
            payload_bytes=_numbers(kind, given, taken, ranks) * SIZES[_plain(args["dtype"])],
            begin_ns=event.begin_ns,
            end_ns=event.end_ns,
            peer=_peer(args, peer, members),
        )

    def _of_gloo(self, kind: Kind, event: _Event) -> Call:
        dims, types = event.args["Input Dims"], event.args["Input type"]
        group = next(iter(self._configured), "0")
        members = self._known(group, None, self._world)
        given = math.prod(dims[0])
        return Call(
            kind=kind,
            group=group,
            number=None,
            rank=members.index(self._rank),
            ranks=len(members),
            payload_bytes=_numbers(kind, given, given, len(members)) * SIZES[_plain(types[0])],
            begin_ns=event.begin_ns,
            end_ns=event.end_ns,
        )

    def _known(self, group: str, told: Any, ranks: int) -> tuple[int, ...]:
        """The global ranks of a group. Raises ValueError where they are not told, or cut short and not even steps."""
        if group not in self.members:
            found = self._configured.get(group) or (_ranks(told, ranks) if told else tuple(range(self._world)))
            if len(found) != ranks:
                raise ValueError(f"{len(found)} members of a group of {ranks}")
            self.members[group] = found
        return self.members[group]

    def steps(self) -> Iterator[tuple[int, int]]:
        """Iterations, as the profiler names them."""
        named = (_event(each, name, self._base_ns) for each, name in self._named if name.startswith(STEP))
        yield from sorted({(event.begin_ns, event.end_ns) for event in named})

    def notes(self) -> Iterator[str]:
        """What was left out."""
        if self.left_out:
            names = ", ".join(f"{count} {name}" for name, count in sorted(self.left_out.items()))
            yield f"calls that do not say how many bytes they moved, or for whom, are left out: {names}"
        if self.posted:
            yield f"{self.posted} messages over gloo are left out: their events end when they are posted, not sent"


def _event(each: Mapping[str, Any], name: str, base_ns: int) -> _Event:
    # Microseconds, with three digits behind the point: whole nanoseconds, which a float that holds a day still tells.
    begin_ns = base_ns + round(float(each["ts"]) * 1000)
    return _Event(name, each.get("args", {}), begin_ns, begin_ns + round(float(each.get("dur", 0)) * 1000))


def _plain(name: object) -> str:
    """A name of a collective or a type, as the tables here have it."""
    return str(name).lower().replace("c10::", "").replace("coalesced", "").replace("_", "").replace(" ", "")


def _numbers(kind: Kind, given: int, taken: int, ranks: int) -> int:
    """Of the vector that a collective is about (`Call.payload_bytes`); what each gives, and takes, is in the trace."""
    if kind == "all-gather":
        return taken if taken > given else given * ranks
    return taken if kind == "receive" else given


def _configured(told: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Groups and their ranks, where the trace lists them whole."""
    groups = told.get("pg_config")
    listed = groups if isinstance(groups, list) else []
    return {str(each["pg_name"]): tuple(each["ranks"]) for each in listed if each.get("ranks") and "pg_name" in each}


def _ranks(told: Any, ranks: int) -> tuple[int, ...]:
    """Of `[0, 8, 16, ...]`, which PyTorch cuts short after 30: the rest goes on in steps as even as those."""
    found = list(ast.literal_eval(told) if isinstance(told, str) else told)
    if found and found[-1] is Ellipsis:
        found.pop()
        steps = {after - before for before, after in pairwise(found)}
        if len(steps) != 1:
            raise ValueError("ranks cut short, at uneven steps")
        step = steps.pop()
        return tuple(found[0] + step * place for place in range(ranks))
    return tuple(int(each) for each in found)


def _peer(args: Mapping[str, Any], name: str | None, members: tuple[int, ...]) -> int | None:
    """The rank in its group of the other one, or of the root; a trace has global ranks."""
    if name is None or name not in args:
        return None
    return members.index(int(args[name]))
