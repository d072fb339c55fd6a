# SPDX-License-Identifier: Apache-2.0
"""Records in which one field has an odd value: the job is right, or losses are named, or one message refuses it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.records.call import Call, RecordError
from analysis.records.formats import Format
from analysis.records.job import Exchange, Job, join_records
from analysis.records.readers import chakra, inspector, kineto, nccl_tests
from tests.damage.mutator import paths
from tests.records.record_writers import COMM_TYPES, Inspector
from tests.records.synthetic_records import MS

RANKS, ITERATIONS = 2, 40
PERIOD_MS = 100
BASE_NS = 10**18 - 10**9
SIZES = {"all-reduce": 40_000_000, "all-gather": 20_000_000}
PLACE = '"@"'
"""Stands for the field in a text, and is no value of the records here."""
MISSING, TWICE = "missing", "twice"
NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1", "-0.5", "1e300", "9" * 30, "9" * 5000, str(2**63)]
EXTREME = ["1e15", str(2**53), "0.0004", *NUMBERS]
"""Odd numbers, and others that could be right in themselves, so that a reader may take them."""
OTHERS = ["null", '""', '"odd"', '"\\ud800\\n"', "true", "[]", "[null]", "{}", '{"odd": 1}', "[" * 5000, MISSING, TWICE]
ODD = [*NUMBERS, *OTHERS]

Path_ = tuple[str | int, ...]


def with_odd(tree: Any, path: Path_, odd: str) -> str:
    """Return the tree as text, with an odd value at the path."""
    inner = tree
    for step in path[:-1]:
        inner = inner[step]
    last, before = path[-1], inner[path[-1]]
    if odd == MISSING and isinstance(inner, dict):
        order = dict(inner)
        del inner[last]
        text = json.dumps(tree)
        inner.clear()
        inner.update(order)
        return text
    inner[last] = PLACE[1:-1]
    text = json.dumps(tree)
    inner[last] = before
    value = "null" if odd == MISSING else odd
    if odd == TWICE:
        value = f"{json.dumps(before)}, {json.dumps(last)}: 7" if isinstance(inner, dict) else "7"
    return text.replace(PLACE, value)


@dataclass
class Example:
    """One format's records of a job of two ranks, of which rank 0's are `parts`: trees whose texts make its file."""

    format: Format
    parts: list[Any]
    joined: Callable[[Sequence[str]], str]
    names: tuple[str, str]
    other: str

    @cached_property
    def fields(self) -> list[tuple[int, Path_]]:
        """Return all fields of some parts, and all of those that are like no other."""
        near = sorted({0, 1, 2, len(self.parts) // 2, len(self.parts) // 2 + 1, len(self.parts) - 1})
        return [(part, path) for part in near if part < len(self.parts) for path in [(), *paths(self.parts[part])]]

    def text(self, part: int = 0, path: Path_ = (), odd: str | None = None) -> str:
        """Return rank 0's file, with an odd value somewhere."""
        texts = [json.dumps(each) for each in self.parts]
        if odd is not None:
            texts[part] = with_odd([self.parts[part]], (0, *path), odd)[1:-1]
        return self.joined(texts)

    @cached_property
    def good(self) -> Job:
        """Return the job without any odd value."""
        with TemporaryDirectory() as folder:
            found = self.found(Path(folder), self.text())
        assert isinstance(found, Job), found
        return found

    def found(self, folder: Path, text: str) -> Job | RecordError:
        """Return the job, of which a profile is made, if rank 0's file has that text."""
        files = [folder / name for name in self.names]
        for file, content in zip(files, (text, self.other), strict=True):
            file.write_text(content)
        try:
            return join_records([self.format.read(file) for file in files])
        except RecordError as error:
            return error


def calls(rank: int) -> list[Call]:
    """Return the calls of a rank: each iteration computes for 50 ms, and sends for 30 and 20."""
    found = []
    for number in range(ITERATIONS):
        begin_ns = 10**18 + rank * 10**9 + number * PERIOD_MS * MS
        for kind, since_ms, lasts_ms in (("all-reduce", 50, 30), ("all-gather", 80, 20)):
            at_ns = begin_ns + since_ms * MS
            end_ns = at_ns + lasts_ms * MS
            found.append(Call(kind, "0", number, rank, RANKS, SIZES[kind], at_ns, end_ns))
    return found


def is_clear(error: RecordError, file: str) -> bool:
    """Return True if a refusal is one line that can be printed, and names the file."""
    return file in error.message and "\n" not in error.message and len(error.message.encode()) < 1500


def is_right(found: Job, good: Job) -> bool:
    """Return True if nothing changed, or if the losses are named."""
    losses, notes = (set(each.losses + each.notes) for each in (found.records[0], good.records[0]))
    epoch_ns = found.records[0].calls[0].begin_ns - good.records[0].calls[0].begin_ns
    steps_ns = tuple((begin_ns + epoch_ns, end_ns + epoch_ns) for begin_ns, end_ns in good.steps_ns)
    if not (found.steps_ns in (steps_ns, good.steps_ns) or losses - notes):
        return False
    is_said = bool(set(found.notes) - set(good.notes))
    here = {shape(each, 0, split=not is_said) for each in found.exchanges}
    before = [{shape(each, by_ns, split=not is_said) for each in good.exchanges} for by_ns in (0, epoch_ns)]
    return here in before or (any(here < each for each in before) and found.lost_share > 0)


def shape(exchange: Exchange, by_ns: int, *, split: bool) -> tuple[Any, ...]:
    """Return an exchange in another epoch, to the microsecond: clocks are compared anew if a call is missing.

    `split` is False if a sentence says that split sizes are missing.
    """
    times_us = (round(exchange.begin_ns + by_ns, -3), round(exchange.end_ns + by_ns, -3))
    return (exchange.kind, exchange.members, exchange.payload_bytes, exchange.sent_bytes if split else None, *times_us)


def kineto_trace(rank: int, *, numbered: bool, split: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a trace's header and its events; with `split`, all-to-alls with split sizes in place of all-gathers."""
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": RANKS, "ranks": [0, 1]}]
    info = {"backend": "nccl", "rank": rank, "world_size": RANKS, "pg_count": 1, "pg_config": groups}
    header = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info, "baseTimeNanoseconds": BASE_NS}
    header["host_name"] = f"n{rank}"
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "ts": 1.5, "pid": 1, "args": {"name": "x"}}]
    for call in calls(rank):
        at_us = (call.begin_ns - BASE_NS) / 1000
        if call.kind == "all-reduce":
            step = {"ph": "X", "name": f"ProfilerStep#{call.number}", "ts": at_us - 50_000, "dur": 100_000.5}
            events.append({**step, "cat": "user_annotation"})
            events.append({**step, "cat": "gpu_user_annotation", "ts": at_us - 40_000})
        is_split = split and call.kind == "all-gather"
        in_ = call.payload_bytes // 4 // (RANKS if call.kind == "all-gather" and not split else 1)
        other = "all_to_allv" if split else "_allgather_base"
        args = {
            "Collective name": "allreduce" if call.kind == "all-reduce" else other,
            "dtype": "Float",
            "In msg nelems": in_,
            "Out msg nelems": call.payload_bytes // 4,
            "Group size": RANKS,
            "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]",
            **({"Seq": call.number} if numbered else {}),
            **({"In split size": "[3, 2]"} if is_split else {}),
        }
        request = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": at_us - 20, "dur": 9.5}
        kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32(ncclWork*)", "pid": 0}
        took_us = (call.end_ns - call.begin_ns) / 1000
        events += [{**request, "args": dict(args)}, {**kernel, "ts": at_us, "dur": took_us, "args": args}]
    return header, events


def kineto_example(*, numbered: bool = True, split: bool = False) -> Example:
    """Return a job as Kineto has it: the first part is the header, the others are the events."""

    def joined(texts: Sequence[str]) -> str:
        return f"""{{"header": {texts[0]}, "traceEvents": [{", ".join(texts[1:])}]}}"""

    def whole(texts: Sequence[str]) -> str:
        return joined(["0", *texts[1:]]).replace('"header": 0', texts[0].strip()[1:-1] or '"header": 0', 1)

    header, events = kineto_trace(0, numbered=numbered, split=split)
    other = kineto_trace(1, numbered=numbered, split=split)
    text = whole([json.dumps(each) for each in (other[0], *other[1])])
    return Example(kineto, [header, *events], whole, ("r0.json", "r1.json"), text)


def inspector_example(version: str) -> Example:
    """Return a job as Inspector has it: parts are lines."""

    def log(rank: int) -> str:
        own = [replace(call, group="0x5a") for call in calls(rank)]
        return Inspector(version=version, host=f"n{rank}").log(own).decode()

    parts = [json.loads(line) for line in log(0).splitlines()]
    return Example(inspector, parts, lambda texts: "".join(f"{each}\n" for each in texts), ("n0.log", "n1.log"), log(1))


def chakra_example() -> Example:
    """Return a job as Chakra's jsonizer has it: parts are the metadata, the groups and the nodes."""

    def nodes(rank: int) -> list[dict[str, Any]]:
        listing = [{"pg_name": "0", "ranks": [0, 1], "group_size": RANKS}]
        found: list[dict[str, Any]] = [
            {"attr": [{"name": "schema", "stringVal": chakra.SCHEMAS[0]}]},
            {"id": "1", "name": "## process_group:init ##", "inputs": {"values": str([json.dumps(listing)])}},
        ]
        for number, call in enumerate(calls(rank), 2):
            parts = RANKS if call.kind == "all-gather" else 1
            attributes = [
                {"name": "comm_type", "int64Val": str(COMM_TYPES[call.kind])},
                {"name": "comm_size", "int64Val": str(call.payload_bytes // parts)},
                {"name": "pg_name", "stringVal": "0"},
            ]
            times = (call.begin_ns // 1000, (call.end_ns - call.begin_ns) // 1000)
            began = {"startTimeMicros": str(times[0]), "durationMicros": str(times[1])}
            node = {"id": str(number), "name": "ncclDevKernel", "type": "COMM_COLL_NODE"}
            found.append({**node, **began, "attr": attributes})
        return found

    other = "".join(map(json.dumps, nodes(1)))
    return Example(chakra, nodes(0), "".join, ("job.0.json", "job.1.json"), other)


EXAMPLES: dict[str, Example] = {
    "kineto": kineto_example(),
    "kineto without Seq": kineto_example(numbered=False),
    "kineto with splits": kineto_example(split=True),
    "inspector v4.0": inspector_example("v4.0"),
    "inspector v4.4": inspector_example("v4.4"),
    "chakra": chakra_example(),
}


def fabric_or_error(path: Path, content: str) -> nccl_tests.Fabric | RecordError:
    """Return the fabric of nccl-tests' file, or why the file is refused."""
    path.write_text(content)
    try:
        return nccl_tests.read(path)
    except RecordError as error:
        return error


def is_right_fabric(found: nccl_tests.Fabric, good: nccl_tests.Fabric) -> bool:
    """Return True if no figure changed; optional figures may be absent, and names are as the file says."""
    named = {"dtype": "float", "operator": "sum", "root": None}
    checked = {replace(each, checked=True, **named) for each in found.measured} <= set(good.measured)
    same = all(one in (None, other) for one, other in ((found.nccl, good.nccl), (found.ranks, good.ranks)))
    return checked and same and found.average_bus_gbps == good.average_bus_gbps
