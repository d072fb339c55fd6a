# SPDX-License-Identifier: Apache-2.0
"""Writes a job's calls as each format has them, as its project documents it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from analysis.records.call import Call

COLLECTIVES = {
    "all-reduce": "AllReduce",
    "all-gather": "AllGather",
    "reduce-scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
}
MESSAGES = {"send": "Send", "receive": "Recv"}
COMM_TYPES = {
    "all-reduce": 0,
    "reduce": 1,
    "all-gather": 2,
    "broadcast": 5,
    "all-to-all": 6,
    "reduce-scatter": 7,
}


@dataclass(frozen=True)
class Inspector:
    """How an Inspector writes: its version, whether its header names communicators (NCCL 2.30 and later)."""

    version: str = "v4.0"
    named: bool = True
    host: str = "n1"
    verbose: bool = True
    dropped: int = 0

    def log(self, calls: Sequence[Call]) -> bytes:
        """One dump a communicator and rank; messages are numbered here, as their calls have no numbers."""
        lines: list[dict[str, Any]] = []
        for member, group in groupby(sorted(calls, key=member_of), key=member_of):
            lines += self.dump(member, list(group))
        return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)

    def dump(self, member: tuple[str, int, int], calls: list[Call]) -> list[dict[str, Any]]:
        context = {"header": self.header(*member), "metadata": self.metadata()}
        perfs = [{"coll_perf": self.collective(call)} for call in calls if call.kind in COLLECTIVES]
        messages = [call for call in calls if call.kind in MESSAGES]
        perfs += [{"p2p_perf": self.message(call, number)} for number, call in enumerate(messages, 1)]
        marker = {**context, "dump_stats": self.stats(len(calls) - len(messages), len(messages))}
        if self.version in ("v4.3", "v4.4"):
            return [marker, *perfs]
        lines = [{**context, **perf} for perf in perfs]
        return lines if self.version == "v4.0" else [marker, *lines]

    def header(self, group: str, rank: int, ranks: int) -> dict[str, Any]:
        name = {"comm_name": "dp"} if self.named else {}
        return {"id": group, **name, "rank": rank, "n_ranks": ranks, "nnodes": ranks}

    def metadata(self) -> dict[str, Any]:
        return {
            "inspector_output_format_version": self.version,
            "git_rev": "",
            "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": 1760000000412345,
            "hostname": self.host,
            "pid": 42,
        }

    def stats(self, collectives: int, messages: int) -> dict[str, int]:
        return {
            "coll_records": collectives,
            "coll_dropped_total": self.dropped,
            "coll_dropped_since_last_dump": self.dropped,
            "p2p_records": messages,
            "p2p_dropped_total": 0,
            "p2p_dropped_since_last_dump": 0,
        }

    def collective(self, call: Call) -> dict[str, Any]:
        parts = call.ranks if call.kind in ("all-gather", "reduce-scatter") else 1
        algorithm = "TREE" if call.is_tree else "RING"
        chosen = {"coll_algo": algorithm, "coll_proto": "SIMPLE"} if self.version >= "v4.2" else {}
        figures = self.figures("coll", call, call.payload_bytes // parts)
        return {"coll": COLLECTIVES[call.kind], **chosen, "coll_sn": call.number, **figures}

    def message(self, call: Call, number: int) -> dict[str, Any]:
        figures = self.figures("p2p", call, call.payload_bytes)
        return {"p2p": MESSAGES[call.kind], "p2p_sn": number, "p2p_peer": call.peer, **figures}

    def figures(self, sort: str, call: Call, size_bytes: int) -> dict[str, Any]:
        begin_us, end_us = call.begin_ns // 1000, call.end_ns // 1000
        gbs = call.payload_bytes / 1e3 / max(end_us - begin_us, 1)
        trace = {
            f"{sort}_start_ts": max(begin_us - 120, 0),
            f"{sort}_stop_ts": max(begin_us - 115, 0),
            "kernel_events": [
                {
                    "channel_id": channel,
                    "kernel_start_ts": begin_us + channel * (end_us - begin_us) // 4,
                    "kernel_stop_ts": end_us - (1 - channel) * (end_us - begin_us) // 8,
                    "kernel_record_ts": end_us,
                }
                for channel in range(2)
            ],
        }
        return {
            f"{sort}_msg_size_bytes": size_bytes,
            f"{sort}_exec_time_us": end_us - begin_us,
            f"{sort}_timing_source": "kernel_gpu",
            f"{sort}_algobw_gbs": round(gbs, 6),
            f"{sort}_busbw_gbs": round(gbs, 6),
            **({"event_trace_sn": {}, "event_trace_ts": trace} if self.verbose else {}),
        }


def member_of(call: Call) -> tuple[str, int, int]:
    return call.group, call.rank, call.ranks


def varint(value: int) -> bytes:
    value %= 2**64
    low = bytes([value & 0x7F | (0x80 if value >> 7 else 0)])
    return low + varint(value >> 7) if value >> 7 else low


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name: str, value: int | str | tuple[bool, ...], kind: int) -> bytes:
    """An AttributeProto as a Node has it; `kind` is the field that its value is in, as et_def.proto numbers them."""
    if isinstance(value, tuple):
        written = bytes_field(kind, bytes_field(1, bytes(value)))
    else:
        written = bytes_field(kind, value.encode()) if isinstance(value, str) else number_field(kind, value)
    return bytes_field(10, bytes_field(1, name.encode()) + written)


INT32, INT64, UINT64, BOOL, BOOLS, STRING = 7, 9, 13, 27, 28, 29


def metadata(schema: str) -> bytes:
    """A GlobalMetadata as chakra_converter writes it: the schema is an attribute."""
    return bytes_field(2, bytes_field(1, b"schema") + bytes_field(STRING, schema.encode()))


def groups_node(members: Mapping[str, tuple[int, ...]]) -> bytes:
    listing = [
        {"pg_name": name, "pg_desc": "default_pg", "ranks": list(ranks), "group_size": len(ranks)}
        for name, ranks in members.items()
    ]
    values = bytes_field(1, repr([json.dumps(listing)]).encode())
    return bytes_field(2, b"## process_group:init ##") + number_field(3, 1) + bytes_field(8, values)


def node(call: Call, members: dict[str, tuple[int, ...]], *, timed: bool = True, size: int = INT64) -> bytes:
    """A COMM node."""
    ranks = members[call.group]
    parts = call.ranks if call.kind == "all-gather" else 1
    content = number_field(1, call.begin_ns) + bytes_field(2, b"ncclDevKernel")
    if call.kind in MESSAGES:
        assert call.peer is not None
        other = "comm_dst" if call.kind == "send" else "comm_src"
        content += number_field(3, 5 if call.kind == "send" else 6) + attribute(other, ranks[call.peer], INT32)
    else:
        content += number_field(3, 7) + attribute("comm_type", COMM_TYPES[call.kind], INT64)
    if timed:
        content += number_field(6, call.begin_ns // 1000)
    content += number_field(7, (call.end_ns - call.begin_ns) // 1000)
    return (
        content + attribute("comm_size", call.payload_bytes // parts, size) + attribute("pg_name", call.group, STRING)
    )


def graph_node(number: int, node_type: int, *waits: int, duration_us: int = 0, **attributes: Any) -> bytes:
    """A node of a dependency graph, without a start time, named after its type and id."""
    content = number_field(1, number) + bytes_field(2, f"n{node_type}-{number}".encode()) + number_field(3, node_type)
    content += b"".join(number_field(4 + number % 2, each) for number, each in enumerate(waits))
    if duration_us:
        content += number_field(7, duration_us)
    kinds = {bool: BOOL, int: INT64, str: STRING, tuple: BOOLS}
    return content + b"".join(attribute(name, value, kinds[type(value)]) for name, value in attributes.items())


def collective_node(number: int, size: int, *waits: int, kind: str = "all-reduce", **more: Any) -> bytes:
    return graph_node(number, 7, *waits, comm_type=COMM_TYPES[kind], comm_size=size, **more)


def computing_node(number: int, duration_us: int, *waits: int, is_cpu_op: bool = False) -> bytes:
    return graph_node(number, 4, *waits, duration_us=duration_us, is_cpu_op=is_cpu_op)


def et(messages: Iterable[bytes]) -> bytes:
    """Messages, each after its length."""
    return b"".join(varint(len(message)) + message for message in messages)
