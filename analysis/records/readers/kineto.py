# SPDX-License-Identifier: Apache-2.0
"""Reader of PyTorch's profiler (Kineto) trace of one rank: Chrome's JSON, with NCCL or gloo.

A call leaves several events in a trace, and only one kind is counted: kernels, which run while bytes are sent, or
gloo's events if there are no kernels. `c10d::...`, `nccl:...` and `record_param_comms` are ignored, because they show
when a call was requested.

Source: libkineto/src/output_json.cpp of pytorch/kineto; src/device of NVIDIA/nccl and ROCm/rccl for kernels' names.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.fields import (
    JSON,
    MAX_WHOLE,
    FieldError,
    describe_json_error,
    quote_value,
    require_list,
    require_mapping,
    require_real,
    require_text,
    require_whole,
)
from analysis.records.files import no_garbage_collection, open_record

NAME = "PyTorch Kineto's trace"
SCHEMA = 1
LIBRARY = re.compile(r"nccl|rccl|msccl|nvshmem|rocshmem|deep_?ep::(?!layout|intranode)", re.IGNORECASE)
"""Names of kernels of libraries that send over networks. A kernel without arguments counts as a lost call."""
LOOKALIKE = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|moe_?a2a|cross_device_reduce|multimem|deep_?ep::intranode",
    re.IGNORECASE,
)
"""Names of kernels of other libraries that probably communicate, most of them within a host."""
KERNEL = re.compile(r"(nccl|rccl|msccl)\w*kernel", re.IGNORECASE)
"""Names of kernels that communicate: NCCL's `ncclDevKernel_*`, `ncclKernel_*` (before 2.19), `ncclSymkDevKernel_*` and
`ncclSymDevKernel_*` (2.27); RCCL's first two of these and `mscclKernel_*`.
"""
TREE = re.compile(r"AllReduce(?!\w*NVLS)\w*_TREE_")
"""Names of kernels that all-reduce along trees. Kernels of other algorithms may have the name of a ring's."""
GLOO, STEP = "gloo:", "ProfilerStep#"
NUMBER = re.compile(r"\d{1,18}", re.ASCII)
REQUEST, ON_GPU = "record_param_comms", "gpu_user_annotation"
COLLECTIVE, RANKS, SPLIT = "Collective name", "Process Group Ranks", "In split size"
NUMBER_TEXT = re.compile(r"['\"]?(\d{1,16})['\"]?", re.ASCII)
BRACKETS = ("[]", "()", "{}")
CPP_NUMBER = re.compile(r"(?<=:)\s*-?(nan|inf)(?=\s*[,}])")
CPP_NUMBERS = {"nan": " NaN", "inf": " Infinity"}
"""C++'s spellings of numbers, such as `"blocks per SM": inf`, which Kineto prints for ratios of zeros, and JSON's."""
OLD_VERSION_HINT = "record with PyTorch 2.3 or later, which writes the arguments of NCCL's kernels"
NO_RANK_HINT = "begin profiling after torch.distributed.init_process_group, with PyTorch 2.3 or later"
NO_KERNEL_HINT = "record on GPUs with ProfilerActivity.CUDA, for whole iterations"
NO_SHAPES_HINT = "record with record_shapes=True, which gives the sizes of gloo's calls"
BATCH_HINT = "PyTorch writes no arguments of messages in a batch; NCCL Inspector 2.30 or later records messages"
MAX_RANKS = 1 << 20
LATEST_NS = 1 << 62
"""Latest valid instant, in the year 2116: differences of earlier instants fit into 64-bit integers."""
SHOWN = 8
PEERS: dict[Kind, str] = {
    "send": "Dst Rank",
    "receive": "Src Rank",
    "broadcast": "Root Rank",
    "reduce": "Root Rank",
}

Event = dict[str, Any]
CallReader = Callable[[Kind, Event], Call]

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
"""The kind of each collective by PyTorch's name, without underscores and `coalesced`; None if it moves hardly any
bytes.
"""
SIZES = {
    "complexdouble": 16,
    **dict.fromkeys(("double", "long", "longint", "int64", "float64", "uint64", "complexfloat"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32", "uint32", "complexhalf"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "shortint", "float16", "int16", "uint16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "signedchar", "unsignedchar", "uint8", "int8"), 1),
    **dict.fromkeys(("float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float8e8m0fnu"), 1),
    "float4e2m1fnx2": 1,
}
"""Bytes of a number, by the name of its type in PyTorch."""


def recognizes(head: bytes) -> bool:
    """Recognize the format; see `formats.Format`."""
    return head.lstrip().startswith(b"{") and any(each in head for each in (b'"traceEvents"', b'"deviceProperties"'))


def read(path: Path) -> Record:
    """Return the record in a trace (see `formats.Format`), which is held in memory as a whole."""
    trace = _trace(path)
    rank, world = _identity(path, trace)
    try:
        reading = _TraceReader(trace, rank, world)
        calls = tuple(sorted(reading.calls(), key=lambda call: call.begin_ns))
    except FieldError as error:
        raise RecordError(f"{path}: {error}") from error
    losses = tuple(reading.losses())
    if not calls:
        found = "; ".join(losses) or "nothing of NCCL's kernels or gloo's events"
        raise RecordError(f"{path}: found no call of a collective that says its bytes: {found}", reading.hint())
    host = trace.get("host_name")
    return Record(
        path=path,
        host=host if isinstance(host, str) else None,
        rank=rank,
        world=world,
        calls=calls,
        members=reading.members,
        steps_ns=tuple(reading.steps()),
        lost=reading.lost,
        losses=losses,
        hint=reading.hint(),
        notes=tuple(reading.notes()),
    )


def _trace(path: Path) -> dict[str, Any]:
    with open_record(path) as file:
        content = file.read().decode(errors="replace")
    try:
        with no_garbage_collection():
            trace = _decoded(content)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: found no JSON ({describe_json_error(error)}), expected {NAME}, whole") from error
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise RecordError(f"{path}: found no list traceEvents, expected {NAME}")
    return trace


def _decoded(content: str) -> Any:
    """Decode JSON, if need be with numbers as C++ prints them. Raises ValueError or RecursionError."""
    try:
        return JSON.decode(content)
    except ValueError:
        if not CPP_NUMBER.search(content):
            raise
        return JSON.decode(CPP_NUMBER.sub(lambda found: CPP_NUMBERS[found[1]], content))


def _identity(path: Path, trace: dict[str, Any]) -> tuple[int, int]:
    """Return the rank and the number of ranks. Raises RecordError."""
    try:
        info = require_mapping(trace, "distributedInfo")
        world = require_whole(info, "world_size", 1, MAX_RANKS)
        return require_whole(info, "rank", 0, world - 1), world
    except FieldError as error:
        what = f"distributedInfo: {error}: the trace does not say whose it is"
        hint = None if trace.get("distributedInfo") else NO_RANK_HINT
        raise RecordError(f"{path}: {what}", hint) from error


def _kernel_label(name: Any) -> str:
    """Return a kernel's name without its arguments, for a message."""
    label = name.split("(", maxsplit=1)[0].strip() if isinstance(name, str) else ""
    return label if label and label.isprintable() else f"events with the name {quote_value(name)}"


class LossCounter:
    """A counter of unreadable events by name and faulty field, with the first message about each field."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._messages: dict[tuple[str, str], str] = {}

    def add(self, name: Any, error: FieldError, count: int = 1) -> None:
        """Count `count` events called `name` that have one fault."""
        key = _kernel_label(name), str(error).partition(":")[0]
        self._counts[key] += count
        self._messages.setdefault(key, str(error))

    def total(self) -> int:
        """Return the number of counted events of all names."""
        return self._counts.total()

    def __str__(self) -> str:
        every = [f"{count} {key[0]} ({self._messages[key]})" for key, count in sorted(self._counts.items())]
        more = [f"and {len(every) - SHOWN} other kinds"] if len(every) > SHOWN else []
        return ", ".join([*every[:SHOWN], *more])


class _TraceReader:
    """One trace, while it is read. `members` are the ranks of each group that a call is of."""

    def __init__(self, trace: dict[str, Any], rank: int, world: int) -> None:
        if "schemaVersion" in trace:
            require_whole(trace, "schemaVersion", SCHEMA, SCHEMA)
        self._base_ns = (
            require_whole(trace, "baseTimeNanoseconds", 0, LATEST_NS) if "baseTimeNanoseconds" in trace else 0
        )
        self._rank, self._world = rank, world
        self._configured = _listed_group_members(trace["distributedInfo"], world)
        self.members: dict[str, tuple[int, ...]] = {}
        self._members_by_report: dict[tuple[str, str, int], tuple[int, ...]] = {}
        self._kernels: list[Event] = []
        self._gloos: list[Event] = []
        self._requested: Counter[Kind] = Counter()
        self._seen: set[Kind | None] = set()
        self._steps: dict[bool, dict[int, tuple[int, int]]] = {True: {}, False: {}}
        self._lost, self._lost_steps = LossCounter(), LossCounter()
        self._posted = self._cut_splits = 0
        self._lookalikes: Counter[str] = Counter()
        self._sort_events(trace["traceEvents"])

    def _sort_events(self, events: list[Any]) -> None:
        """Sort out the events that are read; most are not."""
        takers: dict[str, Callable[[Event], None] | None] = {}
        for event in events:
            if type(event) is not dict:
                self._lost.add("entries of traceEvents", FieldError(f"found {quote_value(event)}, expected an object"))
                continue
            name = event.get("name")
            if type(name) is not str:
                taker = None
            elif name in takers:
                taker = takers[name]
            else:
                taker = takers[name] = self._taker(name)
            if taker:
                taker(event)
            elif event.get("cat") == "kernel":
                self._take_other_kernel(event)

    def _take_other_kernel(self, event: Event) -> None:
        """Take a kernel without a name of NCCL's, if its library or its arguments say that it communicates."""
        name = event.get("name")
        if _is_call(event):
            self._kernels.append(event)
        elif isinstance(name, str) and _is_lookalike(name):
            self._lookalikes[_kernel_label(name)] += 1

    def _taker(self, name: str) -> Callable[[Event], None] | None:
        if KERNEL.search(name):
            return self._kernels.append
        if name.startswith(GLOO):
            return self._gloos.append
        if name.startswith(STEP):
            return self._take_step
        return self._take_request if name == REQUEST else None

    def _take_step(self, event: Event) -> None:
        """Take a step by its number: it is on the CPU and, a little later, on the GPU."""
        try:
            number = event["name"].removeprefix(STEP)
            if not NUMBER.fullmatch(number):
                raise FieldError(f"field name: found {quote_value(event['name'])}, expected {STEP} and a number")
            found, steps = self._times_ns(event), self._steps[event.get("cat") == ON_GPU]
            steps[int(number)] = min(found, steps.get(int(number), found))
        except FieldError as error:
            self._lost_steps.add("ProfilerStep", error)

    def _take_request(self, event: Event) -> None:
        args = event.get("args")
        if isinstance(args, dict) and args.get("Group size") != 1:
            kind = KINDS.get(_normalize_name(str(args.get(COLLECTIVE))))
            if kind:
                self._requested[kind] += 1

    def calls(self) -> Iterator[Call]:
        """Read the calls: kernels, or gloo's events if there are none. Raises FieldError."""
        if not self._kernels:
            yield from self._gloo_calls()
            return
        for event in self._kernels:
            yield from self._call(event, _kernel_kind, self._kernel_call)
        if None not in self._seen:  # a kernel that does not say its kind may be of any
            for kind in sorted(self._requested.keys() - self._seen):
                error = FieldError("found no kernel that ran it, expected one each")
                self._lost.add(f"{kind} of {REQUEST}", error, self._requested[kind])

    def _gloo_calls(self) -> Iterator[Call]:
        if self._gloos and len(self._configured) > 1:
            names = ", ".join(map(quote_value, self._configured))
            what = f"gloo's events and the process groups {names}: its events do not say of which group they are"
            raise FieldError(f"found {what}, expected one group; record with NCCL, which does")
        for event in self._gloos:
            if KINDS.get(_normalize_name(event["name"].removeprefix(GLOO))) in ("send", "receive"):
                self._posted += 1  # the event ends when the message is posted, not when it has gone
            else:
                yield from self._call(event, _gloo_kind, self._gloo_call)

    def _call(self, event: Event, kind_of: Callable[[Event], Kind | None], read: CallReader) -> Iterator[Call]:
        """Read a call, unless it moves nothing; count it as lost if it cannot be read."""
        kind = None
        try:
            if event.get("ph") != "X":
                raise FieldError(f"field ph: found {quote_value(event.get('ph'))}, expected 'X'")
            kind = kind_of(event)
            if kind:
                yield read(kind, event)
                self._seen.add(kind)
        except FieldError as error:
            self._seen.add(kind)
            self._lost.add(event.get("name"), error)

    def _kernel_call(self, kind: Kind, event: Event) -> Call:
        args = event["args"]
        given, taken = require_whole(args, "In msg nelems"), require_whole(args, "Out msg nelems")
        ranks, group = require_whole(args, "Group size", 1, MAX_RANKS), self._group(args)
        members = self._members_of(group, args.get(RANKS), ranks)
        place, size = members.index(self._rank), _size_of(require_text(args, "dtype"))
        sent = self._sent_elements(args, given, place, ranks) if kind == "all-to-all" else None
        begin_ns, end_ns = self._times_ns(event)
        return Call(
            kind=kind,
            group=group,
            number=require_whole(args, "Seq") if "Seq" in args else None,
            rank=place,
            ranks=ranks,
            payload_bytes=_check_size(_numbers(kind, given, taken, ranks) * size),
            begin_ns=begin_ns,
            end_ns=end_ns,
            peer=_peer(args, kind, members),
            is_tree=kind == "all-reduce" and _is_tree(event.get("name")),
            sent_bytes=None if sent is None else sent * size,
        )

    def _sent_elements(self, args: Event, given: int, place: int, ranks: int) -> int | None:
        """Return the elements that the rank at `place` sends to others; None if split sizes are missing or cut short.

        Split sizes count rows of a tensor, or elements: their sum is proportional to the elements of the input.
        """
        value = args.get(SPLIT)
        if value in (None, "", "[]", []):
            return None
        sizes, is_cut = _whole_numbers(value, SPLIT, "sizes")
        if is_cut:
            self._cut_splits += 1
            return None
        total = sum(sizes)
        if len(sizes) != ranks or (given % total if total else given):
            expected = f"one size for each of {ranks} ranks, whose sum divides In msg nelems, {given}"
            raise FieldError(f"field {SPLIT}: found {quote_value(value)}, expected {expected}")
        return given * (total - sizes[place]) // total if total else 0

    def _gloo_call(self, kind: Kind, event: Event) -> Call:
        args = require_mapping(event, "args")
        given = _gloo_bytes(require_list(args, "Input Dims"), require_list(args, "Input type"))
        group = next(iter(self._configured), "0")
        members = self._members_of(group, None, self._world)
        begin_ns, end_ns = self._times_ns(event)
        return Call(
            kind=kind,
            group=group,
            number=None,
            rank=members.index(self._rank),
            ranks=len(members),
            payload_bytes=_check_size(_numbers(kind, given, given, len(members))),
            begin_ns=begin_ns,
            end_ns=end_ns,
        )

    def _times_ns(self, event: Event) -> tuple[int, int]:
        # Microseconds with three decimals are whole nanoseconds, which a float holds exactly for some days.
        since_ns, lasted_ns = (round(require_real(event, name) * 1000) for name in ("ts", "dur"))
        for name, value_ns in (("ts", since_ns), ("dur", lasted_ns)):
            if not value_ns:
                raise FieldError(f"field {name}: found 0, expected more: the event has no time")
        begin_ns = self._base_ns + since_ns
        if begin_ns + lasted_ns > LATEST_NS:
            raise FieldError("field ts: found an end after the year 2116, expected less")
        return begin_ns, begin_ns + lasted_ns

    def _group(self, args: Event) -> str:
        """Return the name of a call's group; PyTorch before 2.3 does not write it."""
        if "Process Group Name" in args:
            return _group_name(args, "Process Group Name")
        return next(iter(self._configured)) if len(self._configured) == 1 else "0"

    def _members_of(self, group: str, reported: Any, ranks: int) -> tuple[int, ...]:
        """Return the global ranks of a group. Raises FieldError if they are missing, or recorded in two ways."""
        key = group, str(reported), ranks
        if key not in self._members_by_report:
            known = self._configured.get(group) or self.members.get(group)
            members = _members(reported, known, ranks, self._world)
            if self._rank not in members:
                raise FieldError(
                    f"field {RANKS}: found no rank {self._rank} in group {quote_value(group)}, expected it"
                )
            self._members_by_report[key] = self.members[group] = members
        return self._members_by_report[key]

    def steps(self) -> list[tuple[int, int]]:
        """Return the iterations that the profiler names, by their numbers: the CPU's, or else the GPU's."""
        named = self._steps[False] or self._steps[True]
        steps = [named[number] for number in sorted(named)]
        return steps if steps == sorted(steps) else []

    @property
    def lost(self) -> int:
        """Return the number of calls that are not among those that were read."""
        return self._lost.total() + self._posted

    def hint(self) -> str | None:
        """Return how to record the calls that were lost, if the trace shows it."""
        if not self._kernels and not self._gloos:
            return NO_KERNEL_HINT
        if not self._kernels:
            return None if any(_has_argument(each, "Input Dims") for each in self._gloos) else NO_SHAPES_HINT
        bare = [str(event.get("name")) for event in self._kernels if not _has_argument(event, COLLECTIVE)]
        if len(bare) == len(self._kernels) and all(map(KERNEL.search, bare)):
            return OLD_VERSION_HINT
        return BATCH_HINT if any("SendRecv" in name for name in bare) else None

    def losses(self) -> Iterator[str]:
        """Yield what was left out of the calls."""
        if self._lost.total():
            yield f"calls that cannot be read are left out: {self._lost}"
        if self._posted:
            yield f"{self._posted} messages over gloo are left out: their events end when they are posted, not sent"

    def notes(self) -> Iterator[str]:
        """Yield what else is not used."""
        if self._kernels and self._gloos:
            yield f"{len(self._gloos)} calls over gloo, beside NCCL's kernels, are left out"
        if self._lookalikes:
            kernels = ", ".join(f"{count} {label}" for label, count in self._lookalikes.most_common(SHOWN))
            yield f"kernels that look like communication, and do not say their bytes, count as computing: {kernels}"
        if self._cut_splits:
            yield f"{self._cut_splits} all-to-alls with split sizes that were cut short are taken for even"
        if self._lost_steps.total():
            yield f"steps that cannot be read are left out: {self._lost_steps}"
        numbers = self._steps[False].keys() | self._steps[True].keys()
        if numbers and len(self.steps()) < max(numbers) - min(numbers) + 1:
            yield f"steps called {STEP}N are missing, or do not begin in the order of their numbers, and are not used"


def _is_call(event: Event) -> bool:
    """Return True if an event of the category `kernel` is a call by its library's name or its arguments."""
    name = event.get("name")
    return (isinstance(name, str) and _is_of_library(name)) or _has_argument(event, COLLECTIVE)


def _has_argument(event: Event, name: str) -> bool:
    args = event.get("args")
    return isinstance(args, dict) and name in args


def _is_tree(name: Any) -> bool:
    return isinstance(name, str) and TREE.search(name) is not None


@lru_cache(maxsize=1 << 14)
def _is_of_library(name: str) -> bool:
    return LIBRARY.search(name) is not None


@lru_cache(maxsize=1 << 14)
def _is_lookalike(name: str) -> bool:
    return LOOKALIKE.search(name) is not None


def _kernel_kind(event: Event) -> Kind | None:
    return _kind(require_text(require_mapping(event, "args"), COLLECTIVE), COLLECTIVE)


def _gloo_kind(event: Event) -> Kind | None:
    return _kind(event["name"].removeprefix(GLOO), "name")


def _kind(name: str, field: str) -> Kind | None:
    plain = _normalize_name(name)
    if plain not in KINDS:
        raise FieldError(f"field {field}: found {quote_value(name)}, expected a collective or message of PyTorch's")
    return KINDS[plain]


@lru_cache(maxsize=1 << 10)
def _normalize_name(name: str) -> str:
    """Return a name of a collective or a type as the tables here have it."""
    return name.lower().replace("c10::", "").replace("coalesced", "").replace("_", "").replace(" ", "")


def _size_of(dtype: str) -> int:
    size = SIZES.get(_normalize_name(dtype))
    if size is None:
        raise FieldError(f"field dtype: found {quote_value(dtype)}, expected a type of PyTorch's whose size is known")
    return size


def _gloo_bytes(dims: list[Any], types: list[Any]) -> int:
    """Return the bytes of all tensors that a process puts in."""
    if len(dims) != len(types) or not dims:
        raise FieldError(f"field Input Dims: found {len(dims)} shapes of {len(types)} tensors, expected one each")
    total = 0
    for place, (shape, dtype) in enumerate(zip(dims, types, strict=True)):
        sides = require_list({"Input Dims": shape}, "Input Dims")
        if any(type(side) is not int or not 0 <= side <= MAX_WHOLE for side in sides):
            raise FieldError(f"field Input Dims: found no shape of tensor {place}, expected whole numbers")
        total += prod(sides) * _size_of(require_text({"Input type": dtype}, "Input type"))
    return total


def _numbers(kind: Kind, given: int, taken: int, ranks: int) -> int:
    """Return the elements of a collective's vector (`Call.payload_bytes`) from its input and output."""
    if (kind == "all-reduce" and given != taken) or (kind == "reduce-scatter" and given < taken):
        raise FieldError(f"field In msg nelems: found {given}, expected as {kind} does of Out msg nelems, {taken}")
    if kind == "all-gather":
        return taken if taken > given else given * ranks
    return taken if kind == "receive" else given


def _check_size(payload_bytes: int) -> int:
    if payload_bytes > MAX_WHOLE:
        raise FieldError("field In msg nelems or Input Dims: found more than 2^53 bytes, expected less")
    return payload_bytes


def _listed_group_members(info: dict[str, Any], world: int) -> dict[str, tuple[int, ...] | None]:
    """Return the groups that a trace lists, with their ranks if it has all of them. Raises FieldError."""
    found: dict[str, tuple[int, ...] | None] = {}
    for place, entry in enumerate(_listed_groups(info)):
        try:
            if isinstance(entry, str):
                name, members = entry, None
            elif "pg_name" in require_mapping({"": entry}, ""):
                name, members = _group_name(entry, "pg_name"), _listed_members(entry, world)
            else:  # PyTorch before 2.3
                name, members = f"#{place}", None
        except FieldError as error:
            raise FieldError(f"distributedInfo: pg_config[{place}]: {error}") from error
        if found.setdefault(name, members) != members:
            raise FieldError(f"distributedInfo: pg_config[{place}]: found {quote_value(name)} again, with other ranks")
    return found


def _listed_groups(info: dict[str, Any]) -> list[Any]:
    """Return the entries of `pg_config`: a list, or its text."""
    groups = info.get("pg_config")
    if isinstance(groups, str):
        try:
            groups = JSON.decode(groups)
        except (ValueError, RecursionError):
            raise FieldError("distributedInfo: field pg_config: found text, expected a list as JSON") from None
    if groups is not None and not isinstance(groups, list):
        raise FieldError(
            f"distributedInfo: field pg_config: found {quote_value(groups)}, expected a list of process groups"
        )
    return groups or []


def _listed_members(entry: dict[str, Any], world: int) -> tuple[int, ...] | None:
    value = entry.get("ranks")
    if value in (None, "", []):
        return None
    found, cut = _whole_numbers(value, "ranks", "ranks")
    if cut and "pg_size" not in entry:
        return None
    return _members(value, None, require_whole(entry, "pg_size", 1, MAX_RANKS) if cut else len(found), world, "ranks")


def _group_name(of: Event, name: str) -> str:
    """Return a group's name, which some versions write as a number."""
    value = of[name]
    if type(value) not in (str, int):
        raise FieldError(f"field {name}: found {quote_value(value)}, expected the name of a process group")
    return str(value)


def _members(
    reported: Any, known: tuple[int, ...] | None, ranks: int, world: int, field: str = RANKS
) -> tuple[int, ...]:
    """Return the ranks of a group: the known ones, else the recorded ones, else all. Raises FieldError."""
    begin, cut = ((), True) if reported in (None, "") else _whole_numbers(reported, field, "ranks")
    if known is None:
        known = _continue_ranks(begin, ranks, field) if cut and begin else begin or tuple(range(world))
    if begin != (known[: len(begin)] if cut else known):
        raise FieldError(
            f"field {field}: found {quote_value(reported)}, expected the ranks that its group has elsewhere"
        )
    if len(known) != ranks:
        raise FieldError(f"field Group size: found {ranks}, expected {len(known)}, as its group has so many ranks")
    if max(known) >= world or len(set(known)) < len(known):
        raise FieldError(f"field {field}: found {quote_value(reported)}, expected different ranks below {world}")
    return known


def _whole_numbers(value: Any, field: str, of: str) -> tuple[tuple[int, ...], bool]:
    """Return the numbers that text or a list has, and True if it was cut short: PyTorch writes the first 30."""
    plain = str(value).strip() if isinstance(value, (str, list)) else ""
    if plain[:1] + plain[-1:] in BRACKETS:
        plain = plain[1:-1]
    parts = [part.strip() for part in plain.split(",")]
    is_cut = parts[1:] != [] and parts[-1] == "..."
    numbers = [NUMBER_TEXT.fullmatch(part) for part in parts[: len(parts) - is_cut]]
    if not all(numbers):
        raise FieldError(f"field {field}: found {quote_value(value)}, expected a list of {of}")
    return tuple(int(number[1]) for number in numbers if number), is_cut


def _continue_ranks(begin: tuple[int, ...], ranks: int, field: str) -> tuple[int, ...]:
    """Return all ranks of a list that was cut short, which goes on in steps as even as those that it has."""
    steps = {after - before for before, after in pairwise(begin)}
    if len(steps) != 1:
        raise FieldError(f"field {field}: found ranks that were cut short, at uneven steps, expected all of them")
    step = steps.pop()
    return tuple(begin[0] + step * place for place in range(ranks))


def _peer(args: Event, kind: Kind, members: tuple[int, ...]) -> int | None:
    """Return the rank in its group of the other process, or of the root; a trace has global ranks."""
    name = PEERS.get(kind)
    if name is None or (name not in args and kind in ("broadcast", "reduce")):
        return None
    peer = require_whole(args, name)
    if peer not in members:
        raise FieldError(f"field {name}: found {peer}, expected a rank of its group")
    return members.index(peer)
