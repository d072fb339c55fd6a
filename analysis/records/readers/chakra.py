# SPDX-License-Identifier: Apache-2.0
"""Reader of a Chakra execution trace of one rank.

Source: src/converter of mlcommons/chakra 1.0.0; process groups as torch/distributed/distributed_c10d.py
(`pg_config_info`) of pytorch/pytorch describes them.
"""

import re
from collections import Counter
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.fields import JSON, MAX_WHOLE, FieldError, quote_value, require_list, require_text, require_whole
from analysis.records.files import open_record
from analysis.records.readers.chakra_nodes import (
    COLLECTIVE,
    COMM_TYPES,
    JSON_START,
    RECEIVE,
    SEND,
    SIZE,
    Node,
    read_messages,
    read_nodes,
)

NAME = "Chakra's execution trace"
SCHEMAS = ("1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", "0.0.4")
"""Known schema versions. chakra_converter writes the first four for PyTorch; the last marks a trace without a source.
"""
REFUSED = {
    "1.0.1": "Chakra's own converter refuses it, too (its issue 198)",
    "1.1.1-chakra.1.0.0": "Chakra's converter 1.0.0 lists it and fails at its first node",
    "1.0.0": "only what Chakra's generator makes up says so, no job's trace",
}
RANK_IN_NAME = re.compile(r"\.(\d{1,9})\.(et|json)(\.gz)?$")
"""The rank in a file's name: Chakra's tools write `<prefix>.<rank>.et`; people name the jsonizer's output."""
GROUPS = "process_group:init"
KINDS: dict[int, Kind] = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
}
BARRIER = 9
MAX_RANKS = 1 << 20
MESSAGES: dict[int, tuple[Kind, str]] = {SEND: ("send", "comm_dst"), RECEIVE: ("receive", "comm_src")}
LINKED = (
    "give the PyTorch Kineto trace that chakra_trace_link made it of: that one has times; or let dependencies say when "
    "each node begins: roundabout profile chakra FILE..."
)

Groups = dict[str, tuple[int, ...]]
"""The global ranks of each process group, by the group's name."""


def recognizes(head: bytes) -> bool:
    """Recognize the format (see `formats.Format`).

    The first protobuf message must be a GlobalMetadata with its version.
    """
    if JSON_START.match(head):
        return True
    try:
        return schema_of(next(read_messages(BytesIO(head)), Node())) is not None
    except FieldError:
        return False


def read(path: Path) -> Record:
    """Read a trace (see `formats.Format`).

    `comm_size` is read as a rank's input bytes. The groups' ranks come from the node that lists process groups.

    Raises RecordError for an unknown schema, a file without start times (chakra_converter sets none), a file name
    without a rank, and a damaged file.
    """
    ranked = RANK_IN_NAME.search(path.name)
    with open_record(path) as file:
        try:
            nodes = read_nodes(file)
            _check(schema_of(next(nodes, Node())))
            rank = int(ranked[1]) if ranked else None
            return _make_record(path, rank, nodes)
        except FieldError as error:
            raise RecordError(f"{path}: {error}") from error


def _check(schema: str | None) -> None:
    if schema in SCHEMAS:
        return
    why = f" ({REFUSED[schema]})" if schema in REFUSED else ""
    raise FieldError(f"schema: found {quote_value(schema)}{why}, expected one of {', '.join(SCHEMAS)}")


def schema_of(metadata: Node) -> str | None:
    """Return the schema's version in a trace's metadata, None if there is none."""
    found = metadata.attributes.get("schema") or metadata.name
    return found if isinstance(found, str) and found else None


def _make_record(path: Path, rank: int | None, nodes: Iterable[Node]) -> Record:
    groups: Groups = {}
    found: list[Node] = []
    for node in nodes:
        if GROUPS in node.name:
            groups |= read_groups(node.values)
        elif _is_call(node):
            found.append(node)
    if not found:
        raise RecordError(f"{path}: found no COMM node, expected some (chakra_converter makes none of gloo's)", LINKED)
    if not any(node.start_us for node in found):
        without = f"no start_time_micros in {len(found)} COMM nodes, expected it: nothing else says when they began"
        raise RecordError(f"{path}: found {without} (chakra_converter sets none)", LINKED)
    if rank is None:
        raise FieldError("found a file name without a rank, expected <prefix>.<rank>.et, or .json")
    left_out: Counter[str] = Counter()
    calls = []
    for node in found:
        why = _rejection_reason(node)
        if why is None:
            calls.append(_call(node, rank, groups))
        else:
            left_out[why] += 1
    return Record(
        path=path,
        host=None,
        rank=rank,
        world=max((len(ranks) for ranks in groups.values()), default=None),
        calls=tuple(sorted(calls, key=lambda call: (call.begin_ns, call.end_ns))),
        members=groups,
        lost=left_out.total(),
        losses=tuple(f"{count} left out: {why}." for why, count in sorted(left_out.items())),
    )


def _is_call(node: Node) -> bool:
    return (node.type in COMM_TYPES or SIZE in node.attributes) and node.attributes.get("comm_type") != BARRIER


def _rejection_reason(node: Node) -> str | None:
    """Return the reason why a node cannot be a call although others can, or None."""
    if node.type not in COMM_TYPES:
        return f"type {node.type} with {SIZE}"
    if not node.start_us:
        return "no start_time_micros"
    kind = node.attributes.get("comm_type")
    if node.type == COLLECTIVE and kind not in KINDS:
        return f"comm_type {quote_value(kind)}"
    if node.type in MESSAGES and MESSAGES[node.type][1] not in node.attributes:
        return f"a message without {MESSAGES[node.type][1]}"
    return None if node.duration_us else "no duration_micros"


def _call(node: Node, rank: int, groups: Groups) -> Call:
    group = node.attributes.get("pg_name", next(iter(groups)) if len(groups) == 1 else None)
    if not isinstance(group, str) or group not in groups:
        known = ", ".join(map(quote_value, groups)) or "none"
        raise FieldError(
            f"field pg_name of {quote_value(node.name)}: found {quote_value(group)}, expected a listed group: {known}"
        )
    ranks = groups[group]
    if node.type in MESSAGES:
        kind, other = MESSAGES[node.type]
        peer = _place(ranks, _number(node, other), group)
    else:
        kind, peer = KINDS[_number(node, "comm_type")], None
    payload_bytes = vector_bytes(kind, _number(node, SIZE), len(ranks))
    end_us = node.start_us + node.duration_us
    if max(payload_bytes, end_us) > MAX_WHOLE or min(node.start_us, node.duration_us) < 0:
        raise FieldError(
            f"node {quote_value(node.name)}: found a size or time above 2^53 or below 0, expected one between"
        )
    return Call(
        kind=kind,
        group=group,
        number=None,
        rank=_place(ranks, rank, group),
        ranks=len(ranks),
        payload_bytes=payload_bytes,
        begin_ns=node.start_us * 1000,
        end_ns=end_us * 1000,
        peer=peer,
    )


def vector_bytes(kind: Kind, comm_size: int, ranks: int) -> int:
    """Return the size of the whole vector: an all-gather states one rank's part of what it collects."""
    return comm_size * (ranks if kind == "all-gather" else 1)


def _place(ranks: tuple[int, ...], rank: int, group: str) -> int:
    if rank not in ranks:
        raise FieldError(
            f"process group {quote_value(group)}: found no rank {rank} in it, expected one of its {len(ranks)}"
        )
    return ranks.index(rank)


def _number(node: Node, name: str) -> int:
    return require_whole(node.attributes, name)


def read_groups(values: str) -> Groups:
    """Return the groups that a `process_group:init` node lists, as JSON within Python's print of its inputs.

    Ranks are left out of the groups that all ranks are in.
    """
    begin = values.find("[{")
    if begin < 0:
        return {}
    try:
        listing, _ = JSON.raw_decode(values, begin)
    except (ValueError, RecursionError):
        raise FieldError(f"node {GROUPS}: found no JSON in its inputs, expected a list of process groups") from None
    groups = {}
    for each in listing:
        name = require_text(each, "pg_name")
        ranks = tuple(require_list(each, "ranks")) or tuple(
            range(min(require_whole(each, "group_size", 1), MAX_RANKS + 1))
        )
        if any(type(rank) is not int or not 0 <= rank < MAX_RANKS for rank in ranks) or len(set(ranks)) != len(ranks):
            raise FieldError(f"process group {quote_value(name)}: found no list of distinct ranks, expected one")
        groups[name] = ranks
    return groups
