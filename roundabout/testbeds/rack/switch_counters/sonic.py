# SPDX-License-Identifier: Apache-2.0
"""Queues of SONiC: its counters database, which the switch refreshes in periods of its own (`counterpoll`)."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from roundabout.runner.hosts.host_group import PortPlace, QueueAnswer, QueueReader
from roundabout.testbeds.rack.examination import HOST_PROGRAMS
from roundabout.testbeds.rack.switch_counters.answers import AnswerBuilder

PROGRAM = (HOST_PROGRAMS / "sonic_queues.py").read_text()
UNICAST = ("SAI_QUEUE_TYPE_UNICAST", "SAI_QUEUE_TYPE_ALL")
LEFT_OUT = ("SAI_QUEUE_TYPE_MULTICAST",)  # jobs send unicast only


class Group(NamedTuple):
    """Counters that the switch reads together: columns, by SAI's names, the command, and the default period."""

    columns: Mapping[str, str]
    command: str
    period_ms: int


# Sources: sonic-swss (portsorch.cpp, watermark_queue.lua), sonic-utilities (counterpoll, wredstat, watermarkstat,
# pfcstat). The hardware's watermark is cleared when it is read, so that a value is the most of one period. PFC frames
# that a port receives pause the queue of their priority's number, as in SONiC's default map (pfc_to_queue).
GROUPS = {
    "QUEUE": Group(
        {"tx_bytes": "SAI_QUEUE_STAT_BYTES", "drops": "SAI_QUEUE_STAT_DROPPED_PACKETS"}, "counterpoll queue", 10_000
    ),
    "QUEUE_WATERMARK": Group(
        {"watermark_bytes": "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"}, "counterpoll watermark", 60_000
    ),
    "WRED_ECN_QUEUE": Group({"marks": "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"}, "counterpoll wredqueue", 10_000),
    "PORT": Group({"pauses": "SAI_PORT_STAT_PFC_{queue}_RX_PKTS"}, "counterpoll port", 1000),
}
PRIORITIES = 8  # of PFC; a port may have more queues
SAMPLED_MS = 1000


def queue_reader(ssh: Sequence[str], ports: Mapping[str, PortPlace]) -> QueueReader:
    """Return the reader of a switch that `ssh` reaches."""
    program = shlex.join(["python3", "-c", PROGRAM, *ports])
    return QueueReader((*ssh, program), "\n", "done$", lambda text: parse(text, ports), ports)


def parse(text: str, ports: Mapping[str, PortPlace]) -> QueueAnswer:
    """Return the queues in an answer of sonic_queues.py."""
    builder = AnswerBuilder()
    found = builder.read_object(text, "the queues")
    columns = _counted_columns(builder, found.get("groups", {}))
    seen = set()
    for name, queue in found.get("queues", {}).items():
        port, _, index = name.rpartition(":")
        seen.add(port)
        if queue["type"] in UNICAST:
            counters = {
                column: _value(builder, queue["counters"], field.format(queue=index))
                for column, field in columns.items()
                if column != "pauses" or index in map(str, range(PRIORITIES))
            }
            builder.add_queue(port, index, counters)
        elif queue["type"] not in LEFT_OUT:
            builder.remark(f"left out: a queue of type {queue['type']}")
    for port in ports.keys() - seen:
        builder.remark(f"{port}: found no queue, expected those of counterpoll queue enable")
    return builder.build()


def _counted_columns(builder: AnswerBuilder, groups: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the columns that the switch keeps counting, with SAI's names. Remark the others, and slow ones."""
    counted: dict[str, str] = {}
    for name, group in GROUPS.items():
        what, entry = " and ".join(group.columns), groups.get(name, {})
        if entry.get("FLEX_COUNTER_STATUS") != "enable":
            builder.remark(f"no {what}: not counted (as root: {group.command} enable)")
            continue
        counted.update(group.columns)
        period_ms = builder.read_count(entry.get("POLL_INTERVAL", group.period_ms), f"{group.command} interval")
        if period_ms is not None and period_ms > SAMPLED_MS:
            builder.remark(f"{what}: new every {period_ms} ms only (as root: {group.command} interval {SAMPLED_MS})")
    return counted


def _value(builder: AnswerBuilder, counters: Mapping[str, Any], field: str) -> int | None:
    if field not in counters:
        builder.remark(f"no {field}: the switch counts it for some queues only, or for none")
        return None
    return builder.read_count(counters[field], field)
