# SPDX-License-Identifier: Apache-2.0
"""Reader of the dependency graph in a Chakra execution trace of one rank, which needs no start times.

Source: schema/protobuf/et_def.proto of mlcommons/chakra 1.0.0; the meaning of attributes as astra-sim/workload of
astra-sim/astra-sim (2026-03) has it.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from analysis.records.call import Kind, RecordError
from analysis.records.fields import FieldError, describe_json_error, quote_value, require_whole
from analysis.records.files import open_record
from analysis.records.readers.chakra import (
    BARRIER,
    GROUPS,
    KINDS,
    RANK_IN_NAME,
    SCHEMAS,
    Groups,
    read_groups,
    schema_of,
)
from analysis.records.readers.chakra_nodes import COLLECTIVE, COMM_TYPES, COMPUTING, SIZE, TYPES, Node, read_nodes

PLAYED_SCHEMAS = (*SCHEMAS, "1.0.0", "1.0.2-chakra.1.0.0", "symbolic_tensor_network")
"""Schemas whose graphs are read. Chakra's generator writes 1.0.0, its converter of ASTRA-sim's text files the next one,
and ASTRA-sim's symbolic tensor graph the last.
"""
WORLD = ("", "0")
"""Names of the group of all ranks where no list of groups has them (Workload.cc of astra-sim)."""
MAX_DURATION_US = 10**12
MAX_RANK = 10_000
UNUSED = ("tensor_size", "comm_priority", "comm_tag")
"""Attributes that say more of a node's time than a profile has: how long memory takes, and the order of messages."""
DURATION, OPERATIONS = "duration_micros", "num_ops"


class Resource(Enum):
    """A part of a worker that does one operation at a time (HardwareResource.cc)."""

    CPU = "CPU"
    GPU = "GPU"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of one rank: its kind, its group, None for all ranks, and `comm_size`, the bytes that it puts in."""

    kind: Kind
    group: str | None
    input_bytes: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A node of the graph. One without a resource lasts no time, and only passes dependencies on.

    A node that computes has a duration, or a number of floating-point operations. A collective's duration is that of
    the network on which its trace was recorded.
    """

    id: int
    name: str
    resource: Resource | None
    dependencies: tuple[int, ...]
    duration_us: int = 0
    operations: int = 0
    collective: Collective | None = None


@dataclass(frozen=True)
class Graph:
    """The operations of one rank, by id, and the groups that its trace lists.

    `untimed` counts nodes without a time. `missing` are the nodes that others wait for and that the trace lacks, such
    as the root, which chakra_converter does not write.
    """

    path: Path
    rank: int
    operations: dict[int, Operation]
    groups: Groups
    untimed: Counter[str] = field(default_factory=Counter)
    missing: set[int] = field(default_factory=set)
    unused: set[str] = field(default_factory=set)


def read_graph(path: Path) -> Graph:
    """Read the graph of the rank that the file's name ends with.

    Raises RecordError for a damaged file, an unknown schema, and a graph that no profile can have: messages, other
    collectives than those of `KINDS`, and collectives in a part of a network's dimensions (`involved_dim`).
    """
    ranked = RANK_IN_NAME.search(path.name)
    if ranked is None or int(ranked[1]) >= MAX_RANK:
        raise RecordError(f"{path}: found a file name without a rank below {MAX_RANK}, expected <prefix>.<rank>.et")
    with open_record(path) as file:
        try:
            nodes = read_nodes(file, all_attributes=True)
            _check_schema(schema_of(next(nodes, Node())))
            return _make_graph(path, int(ranked[1]), nodes)
        except FieldError as error:
            raise RecordError(f"{path}: {error}") from error


def read_group_file(path: Path) -> Groups:
    """Read ASTRA-sim's file of communicator groups: an object of lists of ranks, by name. Raises RecordError."""
    try:
        with open_record(path) as file:
            found = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: found no JSON: {describe_json_error(error)}") from error
    if not isinstance(found, dict) or not all(map(_is_group, found.values())):
        raise RecordError(f'{path}: found no groups, expected an object of lists of ranks, such as {{"1": [0, 1]}}')
    return {name: tuple(ranks) for name, ranks in found.items()}


def _is_group(ranks: object) -> bool:
    if not isinstance(ranks, list) or any(type(rank) is not int or not 0 <= rank < MAX_RANK for rank in ranks):
        return False
    return len(set(ranks)) == len(ranks) > 0


def _check_schema(schema: str | None) -> None:
    if schema not in PLAYED_SCHEMAS:
        raise FieldError(f"schema: found {quote_value(schema)}, expected one of {', '.join(PLAYED_SCHEMAS)}")


def _make_graph(path: Path, rank: int, nodes: Iterable[Node]) -> Graph:
    graph = Graph(path, rank, {}, {})
    for number, node in enumerate(nodes, 1):
        try:
            operation = _operation(node, graph.untimed)
            if GROUPS in node.name:
                graph.groups.update(read_groups(node.values))
            if node.id in graph.operations:
                raise FieldError("found a second node of this id, expected one")
        except FieldError as error:
            raise FieldError(f"message {number}, node {node.id} ({quote_value(node.name)}): {error}") from None
        graph.operations[node.id] = operation
        graph.unused.update(node.attributes.keys() & UNUSED)
    missing = {other for each in graph.operations.values() for other in each.dependencies} - set(graph.operations)
    graph.missing.update(missing)
    return graph


def _operation(node: Node, untimed: Counter[str]) -> Operation:
    """Return a node's operation, and count one that lasts no time by its type."""
    if node.type in COMM_TYPES:
        return _communication(node, untimed)
    duration_us = require_whole({DURATION: node.duration_us}, DURATION, most=MAX_DURATION_US)
    operations = require_whole(node.attributes, OPERATIONS) if OPERATIONS in node.attributes else 0
    if node.type == COMPUTING and (duration_us or operations):
        resource = Resource.CPU if node.attributes.get("is_cpu_op") else Resource.GPU
        return Operation(node.id, node.name, resource, node.dependencies, duration_us, operations)
    untimed[_type_name(node.type)] += 1
    return Operation(node.id, node.name, None, node.dependencies)


def _communication(node: Node, untimed: Counter[str]) -> Operation:
    kind = node.attributes.get("comm_type")
    if node.type != COLLECTIVE:
        raise FieldError(
            f"found a message ({_type_name(node.type)}), expected collectives alone: a profile has one sequence of "
            "phases for all workers"
        )
    if kind == BARRIER:
        untimed["barrier"] += 1
        return Operation(node.id, node.name, None, node.dependencies)
    if kind not in KINDS or type(kind) is not int:
        known = ", ".join(f"{number} ({name})" for number, name in KINDS.items())
        raise FieldError(f"comm_type: found {quote_value(kind)}, expected one of {known}")
    if not all(_dimensions(node)):
        raise FieldError("involved_dim: found a dimension that is left out, expected all: give the group as pg_name")
    group = node.attributes.get("pg_name", "")
    if not isinstance(group, str):
        raise FieldError(f"pg_name: found {quote_value(group)}, expected text")
    collective = Collective(KINDS[kind], group or None, require_whole(node.attributes, SIZE, 1))
    duration_us = require_whole({DURATION: node.duration_us}, DURATION, most=MAX_DURATION_US)
    return Operation(node.id, node.name, Resource.NETWORK, node.dependencies, duration_us, collective=collective)


def _dimensions(node: Node) -> tuple[bool, ...]:
    found = node.attributes.get("involved_dim", ())
    if not isinstance(found, tuple):
        raise FieldError(f"involved_dim: found {quote_value(found)}, expected a list of true and false")
    return found


def _type_name(number: int) -> str:
    return next((name for name, each in TYPES.items() if each == number), f"type {number}")
