# SPDX-License-Identifier: Apache-2.0
"""Nodes of a Chakra execution trace: protocol buffers, or the JSON that chakra_jsonizer makes of them.

Source: schema/protobuf/et_def.proto and src/jsonizer of mlcommons/chakra 1.0.0. protobuf's json_format does not read
the JSON: it takes five times as long, and it accepts a string where an object belongs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, starmap
from typing import Any, BinaryIO

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from analysis.records.fields import JSON, FieldError, quote_value, require_list, require_text
from analysis.records.files import HEAD_BYTES

JSON_START = re.compile(rb'\s*\{\s*("attr"\s*:\s*\[|"version"\s*:\s*")')
"""Begin of a JSON trace. A first character is not enough, because `{` and white space are valid lengths of a message.
"""
COMPUTING, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
COMM_TYPES = (SEND, RECEIVE, COLLECTIVE)
TYPES = {
    "INVALID_NODE": 0,
    "METADATA_NODE": 1,
    "MEM_LOAD_NODE": 2,
    "MEM_STORE_NODE": 3,
    "COMP_NODE": COMPUTING,
    "COMM_SEND_NODE": SEND,
    "COMM_RECV_NODE": RECEIVE,
    "COMM_COLL_NODE": COLLECTIVE,
}
"""Names of the types of nodes, as JSON has them."""
SIZE = "comm_size"
"""Name of the attribute with a node's bytes; only COMM nodes have it."""
INTEGERS = ("int32Val", "int64Val", "uint32Val", "uint64Val")
"""Integer fields of AttributeProto in JSON: `comm_size` was unsigned before 2024-10 and is signed since."""
STRING, BOOLEAN, BOOLEANS = "stringVal", "boolVal", "boolList"
MAX_BYTES = 1 << 28
"""Largest size of a message, bytes. A longer one is damaged, and reading it would exhaust the memory."""
LENGTH_BYTES = 10
"""Largest length, in bytes, of the varint before a message."""
SCHEMA = """
name: "et_def.proto" syntax: "proto3"
message_type { name: "BoolList" field { name: "values" number: 1 type: TYPE_BOOL label: LABEL_REPEATED } }
message_type {
  name: "Attribute"
  oneof_decl { name: "value" }
  field { name: "name" number: 1 type: TYPE_BYTES }
  field { name: "int32_val" number: 7 type: TYPE_INT32 oneof_index: 0 }
  field { name: "int64_val" number: 9 type: TYPE_INT64 oneof_index: 0 }
  field { name: "uint32_val" number: 11 type: TYPE_UINT32 oneof_index: 0 }
  field { name: "uint64_val" number: 13 type: TYPE_UINT64 oneof_index: 0 }
  field { name: "bool_val" number: 27 type: TYPE_BOOL oneof_index: 0 }
  field { name: "bool_list" number: 28 type: TYPE_MESSAGE type_name: "BoolList" oneof_index: 0 }
  field { name: "string_val" number: 29 type: TYPE_BYTES oneof_index: 0 }
}
message_type {
  name: "GlobalMetadata"
  field { name: "version" number: 1 type: TYPE_BYTES }
  field { name: "attr" number: 2 type: TYPE_MESSAGE type_name: "Attribute" label: LABEL_REPEATED }
}
message_type { name: "Inputs" field { name: "values" number: 1 type: TYPE_BYTES } }
message_type {
  name: "Node"
  field { name: "id" number: 1 type: TYPE_UINT64 }
  field { name: "name" number: 2 type: TYPE_BYTES }
  field { name: "type" number: 3 type: TYPE_INT32 }
  field { name: "ctrl_deps" number: 4 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "data_deps" number: 5 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "start_time_micros" number: 6 type: TYPE_UINT64 }
  field { name: "duration_micros" number: 7 type: TYPE_UINT64 }
  field { name: "inputs" number: 8 type: TYPE_MESSAGE type_name: "Inputs" }
  field { name: "attr" number: 10 type: TYPE_MESSAGE type_name: "Attribute" label: LABEL_REPEATED }
}
"""
"""The used fields of et_def.proto as a descriptor in text format, which needs neither protoc nor generated code.

Its strings are bytes here, which have the same encoding, so that a name that is no UTF-8 does not spoil a trace."""
POOL = DescriptorPool()
"""A pool besides protobuf's default pool, in which another module may register Chakra's whole schema."""
POOL.Add(Parse(SCHEMA, FileDescriptorProto()))
METADATA_MESSAGE, NODE_MESSAGE = (
    GetMessageClass(POOL.FindMessageTypeByName(name)) for name in ("GlobalMetadata", "Node")
)
JSON_NAMES = {
    each.name: each.camelcase_name
    for message in ("Attribute", "GlobalMetadata", "Node")
    for each in POOL.FindMessageTypeByName(message).fields
}
"""Names of fields in JSON by those of the schema, which protobuf's printers can write, too."""


Attribute = int | str | bool | tuple[bool, ...]


@dataclass(slots=True)
class Node:
    """The used fields of a node.

    `values` are the values of its inputs, `dependencies` the ids of the nodes that it waits for. A time of 0 is
    missing. `attributes` may lack those of nodes that neither communicate nor have a size (see `read_nodes`).
    """

    name: str = ""
    id: int = 0
    type: int = 0
    start_us: int = 0
    duration_us: int = 0
    values: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    dependencies: tuple[int, ...] = ()


def read_nodes(file: BinaryIO, *, all_attributes: bool = False) -> Iterator[Node]:
    """Yield the metadata, whose `name` is the schema's version, and then each node, from protocol buffers or JSON.

    Attributes of most nodes, which compute, are left out of protocol buffers unless `all_attributes`: reading them
    takes longer than all else. Raises FieldError for a damaged or truncated file.
    """
    begin = file.tell()
    beginning = file.read(HEAD_BYTES)
    if not beginning:
        raise FieldError("found an empty file, expected a trace's metadata and nodes")
    file.seek(begin)
    if JSON_START.match(beginning):
        yield from starmap(_parse_json_message, enumerate(_split_json(file)))
    else:
        yield from read_messages(file, all_attributes=all_attributes)


def read_messages(file: BinaryIO, *, all_attributes: bool = False) -> Iterator[Node]:
    """Yield the metadata, and then each node, from protocol buffers (see `read_nodes`)."""
    for number, message in enumerate(_split_messages(file)):
        try:
            yield _parse_node(message, all_attributes) if number else _parse_metadata(message)
        except DecodeError as error:
            kind = "Node" if number else "GlobalMetadata"
            raise FieldError(f"message {number}: found no {kind}, expected one: damaged, or none of Chakra") from error


def _split_messages(file: BinaryIO) -> Iterator[bytes]:
    """Yield each message. Its length comes before it, as parseDelimitedFrom expects."""
    for number in count():
        length = _read_length(file, number)
        if length is None:
            return
        if length > MAX_BYTES:
            raise FieldError(f"message {number}: found {length} bytes, expected {MAX_BYTES} at most: none of Chakra")
        message = file.read(length)
        if len(message) != length:
            raise FieldError(
                f"message {number}: found {len(message)} bytes, expected {length}: cut off, or none of Chakra"
            )
        yield message


def _read_length(file: BinaryIO, number: int) -> int | None:
    """Return the varint before message `number`; None at the end of the file."""
    length = 0
    for place in range(LENGTH_BYTES):
        byte = file.read(1)
        if not byte and not place:
            return None
        length |= (byte[0] & 0x7F if byte else 0) << (7 * place)
        if not byte or byte[0] < 0x80:
            return length
    raise FieldError(f"message {number}: found a length without end, expected one of {LENGTH_BYTES} bytes at most")


def _parse_metadata(content: bytes) -> Node:
    message: Any = METADATA_MESSAGE.FromString(content)
    return Node(name=_text(message.version), attributes=_attributes(message))


def _parse_node(content: bytes, all_attributes: bool) -> Node:
    message: Any = NODE_MESSAGE.FromString(content)
    has_attributes = all_attributes or message.type in COMM_TYPES or SIZE.encode() in content
    return Node(
        name=_text(message.name),
        id=message.id,
        type=message.type,
        start_us=message.start_time_micros,
        duration_us=message.duration_micros,
        values=_text(message.inputs.values),
        attributes=_attributes(message) if has_attributes else {},
        dependencies=(*message.ctrl_deps, *message.data_deps),
    )


def _attributes(message: Any) -> dict[str, Attribute]:
    """Return the attributes of a message by name, without those of unused kinds."""
    found = ((each.name, getattr(each, kind)) for each in message.attr if (kind := each.WhichOneof("value")))
    return {_text(name): _attribute(value) for name, value in found}


def _attribute(value: Any) -> Attribute:
    if isinstance(value, bytes):
        return _text(value)
    return value if isinstance(value, int) else tuple(value.values)


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


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


def _parse_json_message(number: int, message: dict[str, Any]) -> Node:
    """Return the node of an object, whose fields have JSON's names or the schema's."""
    entry = _with_json_names(message)
    try:
        return _parse_json_node(entry)
    except FieldError as error:
        raise FieldError(f"message {number}, node {quote_value(entry.get('name', ''))}: {error}") from None


def _with_json_names(entry: dict[str, Any]) -> dict[str, Any]:
    return {JSON_NAMES.get(name, name): value for name, value in entry.items()}


def _parse_json_node(entry: dict[str, Any]) -> Node:
    inputs = entry.get("inputs")
    return Node(
        name=str(entry.get("name", entry.get("version", ""))),
        id=_integer_of(entry, "id"),
        type=TYPES.get(str(entry.get("type")), 0),
        start_us=_integer_of(entry, "startTimeMicros"),
        duration_us=_integer_of(entry, "durationMicros"),
        values=str(inputs.get("values", "")) if isinstance(inputs, dict) else "",
        attributes=_attributes_of_json(_list_of_json(entry, "attr")),
        dependencies=tuple(_integer(each) for name in ("ctrlDeps", "dataDeps") for each in _list_of_json(entry, name)),
    )


def _integer_of(entry: dict[str, Any], name: str) -> int:
    """Return a field, 0 if it is missing."""
    try:
        return _integer(entry.get(name, 0))
    except FieldError as error:
        raise FieldError(f"{name}: {error}") from None


def _list_of_json(entry: dict[str, Any], name: str) -> list[Any]:
    return require_list(entry, name) if name in entry else []


def _attributes_of_json(listing: list[Any]) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for attribute in listing:
        name = require_text(attribute, "name")
        each = _with_json_names(attribute)
        for key in INTEGERS:
            if key in each:
                found[name] = _integer_of(each, key)
        if STRING in each:
            found[name] = require_text(each, STRING)
        if BOOLEAN in each:
            found[name] = _boolean(each[BOOLEAN])
        if BOOLEANS in each:
            found[name] = tuple(map(_boolean, require_list(each[BOOLEANS], "values")))
    return found


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise FieldError(f"found {quote_value(value)}, expected true or false")
    return value


def _integer(value: Any) -> int:
    """Return a number of JSON; those of 64 bits are written as text."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value, re.ASCII):
        return int(value)
    if type(value) is not int:
        raise FieldError(f"found {quote_value(value)}, expected a whole number")
    return value
