# SPDX-License-Identifier: Apache-2.0
"""Queues of Arista EOS: packets that each queue marked, where the switch counts them."""

from collections.abc import Mapping, Sequence

from roundabout.runner.hosts.host_group import PortPlace, QueueAnswer, QueueReader
from roundabout.testbeds.rack.switch_counters.answers import AnswerBuilder

COMMAND = "show qos interfaces ecn counters queue"
# The last command's answer is one line, which ends each sample.
REQUEST = f"terminal length 0\n{COMMAND} | json\nshow version | include ^Software image version\n"
COUNTED = "random-detect ecn count in its tx-queue, and on some platforms: hardware counter feature ecn out"


def queue_reader(ssh: Sequence[str], ports: Mapping[str, PortPlace]) -> QueueReader:
    """Return the reader of a switch that `ssh` reaches."""
    return QueueReader((*ssh,), REQUEST, "Software image version", lambda text: parse(text, ports), ports)


def parse(text: str, ports: Mapping[str, PortPlace]) -> QueueAnswer:
    """Return the queues in EOS' answer. A dash stands for a queue whose marks are not counted."""
    builder = AnswerBuilder()
    found = builder.read_object(text, COMMAND)
    interfaces = builder.read_block(found, "intfQueueCounters", COMMAND) if found else {}
    for port in ports if interfaces else ():
        queues = builder.read_block(builder.read_block(interfaces, port, COMMAND), "queueCounters", port)
        for queue, marks in queues.items():
            if marks == "-":
                builder.remark(f"no marks of {port} queue {queue}: not counted (it needs {COUNTED})")
            else:
                builder.add_queue(port, queue, {"marks": builder.read_count(marks, f"{port} queue {queue}")})
    return builder.build()
