# SPDX-License-Identifier: Apache-2.0
"""Queues of Cumulus Linux: NVUE's `counters qos` of each port.

PFC frames that a port received are counted by switch priority, and stand at the queue with its number, as `nv set qos
roce` maps priorities to traffic classes. Discards are left out, because NVUE's tables show them as bytes and the
hardware counts frames.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from roundabout.runner.hosts.host_group import PortPlace, QueueAnswer, QueueReader
from roundabout.testbeds.rack.switch_counters.answers import AnswerBuilder

COLUMNS = {"tx_bytes": "tx-bytes", "marks": "ecn-marked-frames"}
PAUSES = "rx-pause-frames"


def queue_reader(ssh: Sequence[str], ports: Mapping[str, PortPlace]) -> QueueReader:
    """Return the reader of a switch that `ssh` reaches."""
    # stdin has the next requests, which `nv` must not read.
    each = 'echo "port $port"; nv show interface "$port" counters qos -o json < /dev/null 2>&1'
    request = f"for port in {' '.join(ports)}; do {each}; done; echo done\n"
    return QueueReader((*ssh, "sh -s"), request, "done$", lambda text: parse(text, ports), ports)


def parse(text: str, ports: Mapping[str, PortPlace]) -> QueueAnswer:
    """Return the queues in the answers of `nv`, each behind the name of its port."""
    builder = AnswerBuilder()
    _, *parts = re.split(r"^port (\S+)$", text, flags=re.MULTILINE)
    answers = dict(zip(parts[::2], parts[1::2], strict=True))
    for port in ports:
        found = builder.read_object(answers.get(port, ""), port)
        queues = builder.read_block(found, "egress-queue-stats", port) if found else {}
        pauses = builder.read_block(found, "pfc-stats", port) if queues else {}
        for queue in queues:
            fields = builder.read_block(queues, queue, port)
            counters = {column: _value(builder, fields, field) for column, field in COLUMNS.items()}
            paused = builder.read_block(pauses, queue, f"{port} pfc-stats") if queue in pauses else {}
            counters["pauses"] = _value(builder, paused, PAUSES)
            builder.add_queue(port, queue, counters)
    return builder.build()


def _value(builder: AnswerBuilder, fields: Mapping[str, Any], field: str) -> int | None:
    if field not in fields:
        builder.remark(f"no {field}: this release or platform does not count it")
        return None
    return builder.read_count(fields[field], field)
