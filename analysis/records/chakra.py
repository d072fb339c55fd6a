# SPDX-License-Identifier: Apache-2.0
"""Reader of a Chakra execution trace of one rank: protocol buffers, or the JSON that chakra_jsonizer makes of them.

Source: schema/protobuf/et_def.proto, src/converter and src/jsonizer of mlcommons/chakra 1.0.0; process groups as
torch/distributed/distributed_c10d.py (`pg_config_info`) of pytorch/pytorch describes them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from analysis.records import protobuf_wire
from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.fields import JSON, MOST, FieldError, quote_value, require_list, require_text, require_whole
from analysis.records.files import open_record

NAME = "Chakra's execution trace"
SCHEMAS = ("1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4", "0.0.4")
"""The first four are what chakra_converter writes of PyTorch, the last is a trace without a source."""
REFUSED = {
    "1.0.1": "Chakra's own converter refuses it, too (its issue 198)",
    "1.1.1-chakra.1.0.0": "Chakra's converter 1.0.0 lists it and fails at its first node",
    "1.0.0": "only what Chakra's generator makes up says so, no job's trace",
}
JSON_START = re.compile(rb'\s*\{\s*("attr"\s*:\s*\[|"version"\s*:\s*")')
RANK_IN_NAME = re.compile(r"\.(\d{1,9})\.(et|json)(\.gz)?$")
"""`<prefix>.<rank>.et`, as Chakra's tools name traces; the jsonizer's output is named by hand."""
GROUPS = "process_group:init"
SEND, RECEIVE, COLLECTIVE = 5, 6, 7
TYPES = {"COMM_SEND_NODE": SEND, "COMM_RECV_NODE": RECEIVE, "COMM_COLL_NODE": COLLECTIVE}
SIZE = "comm_size"
"""Attribute of COMM nodes only."""
KINDS: dict[int, Kind] = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
}
BARRIER = 9
MOST_RANKS = 1 << 20
MESSAGES: dict[int, tuple[Kind, str]] = {SEND: ("send", "comm_dst"), RECEIVE: ("receive", "comm_src")}
INTEGERS = {7: "int32Val", 9: "int64Val", 11: "uint32Val", 13: "uint64Val"}
"""Fields of AttributeProto, and as JSON calls them: `comm_size` was unsigned before 2024-10 and is signed since."""
STRING, STRING_JSON = 29, "stringVal"
LINKED = "give the PyTorch Kineto trace that chakra_trace_link made it of: that one has times"

Groups = dict[str, tuple[int, ...]]
"""Global ranks by a process group's name."""


@dataclass(slots=True)
class _Node:
    """The used fields of a node; `values` are those of its inputs. 0 stands for a missing time."""

    name: str = ""
    type: int = 0
    start_us: int = 0
    duration_us: int = 0
    values: str = ""
    attributes: dict[str, int | str] = field(default_factory=dict)


def recognizes(head: bytes) -> bool:
    """Recognize the format (see `formats.Format`).

    The first protobuf message must be a GlobalMetadata with its version.
    """
    if JSON_START.match(head):
        return True
    try:
        length, at = protobuf_wire.read_varint(head, 0)
        return bool(length) and _schema(_metadata(head[at : at + length])) is not None
    except FieldError:
        return False


def read(path: Path) -> Record:
    """Read a trace (see `formats.Format`).

    `comm_size` are a rank's input bytes; the node that lists groups gives their ranks.

    Raises RecordError for an unknown schema, for a file without start times (chakra_converter sets none), or whose name
    has no rank, and for a damaged one.
    """
    ranked = RANK_IN_NAME.search(path.name)
    with open_record(path) as file:
        try:
            nodes = _read_protobuf(file)
            _check(_schema(next(nodes, _Node())))
            rank = int(ranked[1]) if ranked else None
            return _make_record(path, rank, nodes)
        except FieldError as error:
            raise RecordError(f"{path}: {error}") from error


def _check(schema: str | None) -> None:
    if schema in SCHEMAS:
        return
    why = f" ({REFUSED[schema]})" if schema in REFUSED else ""
    raise FieldError(f"schema: found {quote_value(schema)}{why}, expected one of {', '.join(SCHEMAS)}")


def _schema(metadata: _Node) -> str | None:
    found = metadata.attributes.get("schema") or metadata.name
    return found if isinstance(found, str) and found else None


def _make_record(path: Path, rank: int | None, nodes: Iterable[_Node]) -> Record:
    groups: Groups = {}
    found: list[_Node] = []
    for node in nodes:
        if GROUPS in node.name:
            groups |= _groups(node.values)
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


def _is_call(node: _Node) -> bool:
    return (node.type in TYPES.values() or SIZE in node.attributes) and node.attributes.get("comm_type") != BARRIER


def _rejection_reason(node: _Node) -> str | None:
    """Return the reason why a node cannot be a call although others can, or None."""
    if node.type not in TYPES.values():
        return f"type {node.type} with {SIZE}"
    if not node.start_us:
        return "no start_time_micros"
    kind = node.attributes.get("comm_type")
    if node.type == COLLECTIVE and kind not in KINDS:
        return f"comm_type {quote_value(kind)}"
    if node.type in MESSAGES and MESSAGES[node.type][1] not in node.attributes:
        return f"a message without {MESSAGES[node.type][1]}"
    return None if node.duration_us else "no duration_micros"


def _call(node: _Node, rank: int, groups: Groups) -> Call:
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
    payload_bytes = _number(node, SIZE) * (len(ranks) if kind == "all-gather" else 1)
    end_us = node.start_us + node.duration_us
    if max(payload_bytes, end_us) > MOST or min(node.start_us, node.duration_us) < 0:
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


def _place(ranks: tuple[int, ...], rank: int, group: str) -> int:
    if rank not in ranks:
        raise FieldError(
            f"process group {quote_value(group)}: found no rank {rank} in it, expected one of its {len(ranks)}"
        )
    return ranks.index(rank)


def _number(node: _Node, name: str) -> int:
    return require_whole(node.attributes, name)


def _groups(values: str) -> Groups:
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
            range(min(require_whole(each, "group_size", 1), MOST_RANKS + 1))
        )
        if any(type(rank) is not int or not 0 <= rank < MOST_RANKS for rank in ranks) or len(set(ranks)) != len(ranks):
            raise FieldError(f"process group {quote_value(name)}: found no list of distinct ranks, expected one")
        groups[name] = ranks
    return groups


def _read_protobuf(file: BinaryIO) -> Iterator[_Node]:
    """Yield the metadata, then each node; of metadata `name` is the version."""
    begin = file.tell()
    beginning = file.read(1)
    file.seek(begin)
    if beginning.isspace() or beginning == b"{":
        yield from map(_parse_json_node, _split_json(file))
        return
    messages = protobuf_wire.read_messages(file)
    yield _metadata(next(messages, b""))
    yield from map(_parse_node, messages)


def _split_json(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the objects of concatenated JSON."""
    try:
        content = file.read().decode(errors="replace")
        at = 0
        while at < len(content) and (at := content.find("{", at)) >= 0:
            found, at = JSON.raw_decode(content, at)
            yield found
    except (ValueError, RecursionError) as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError("found no JSON, or one that was cut off, expected objects that run together") from None


def _metadata(message: bytes) -> _Node:
    """Return a GlobalMetadata's version, as `name`, and its attributes."""
    node = _Node()
    for number, value in protobuf_wire.read_fields(message):
        if number == 1:
            node.name = _text(value)
        elif number == 2:
            node.attributes |= _attribute(_bytes(value))
    return node


def _parse_node(message: bytes) -> _Node:
    """Return a node; its attributes only if they are used, because most nodes are of computing."""
    node = _Node()
    attributes: list[int | bytes] = []
    for number, value in protobuf_wire.read_fields(message):
        if number == 2:
            node.name = _text(value)
        elif number == 3:
            node.type = _varint(value)
        elif number == 6:
            node.start_us = _varint(value)
        elif number == 7:
            node.duration_us = _varint(value)
        elif number == 8:
            node.values = "".join(_text(each) for at, each in protobuf_wire.read_fields(_bytes(value)) if at == 1)
        elif number == 10:
            attributes.append(value)
    if node.type in TYPES.values() or any(type(each) is bytes and SIZE.encode() in each for each in attributes):
        for value in attributes:
            node.attributes |= _attribute(_bytes(value))
    return node


def _attribute(message: bytes) -> dict[str, int | str]:
    """Return one attribute by its name; empty for unused kinds."""
    name: str = ""
    found: int | str | None = None
    for number, value in protobuf_wire.read_fields(message):
        if number == 1:
            name = _text(value)
        elif number in INTEGERS:
            found = _signed(_varint(value))
        elif number == STRING:
            found = _text(value)
    return {} if found is None else {name: found}


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _varint(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise FieldError("found bytes where a number is expected: no Chakra trace")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise FieldError("found a number where a message is expected: no Chakra trace")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode(errors="replace")


def _parse_json_node(entry: dict[str, Any]) -> _Node:
    inputs = entry.get("inputs")
    return _Node(
        name=str(entry.get("name", entry.get("version", ""))),
        type=TYPES.get(str(entry.get("type")), 0),
        start_us=_integer(entry.get("startTimeMicros", 0)),
        duration_us=_integer(entry.get("durationMicros", 0)),
        values=str(inputs.get("values", "")) if isinstance(inputs, dict) else "",
        attributes=_attributes_of_json(require_list(entry, "attr") if "attr" in entry else []),
    )


def _attributes_of_json(listing: list[Any]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for each in listing:
        name = require_text(each, "name")
        for key in INTEGERS.values():
            if key in each:
                found[name] = _integer(each[key])
        if STRING_JSON in each:
            found[name] = require_text(each, STRING_JSON)
    return found


def _integer(value: Any) -> int:
    """Return a number of JSON; those of 64 bits are written as text."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value, re.ASCII):
        return int(value)
    if type(value) is not int:
        raise FieldError(f"found {quote_value(value)}, expected a whole number")
    return value
