# SPDX-License-Identifier: Apache-2.0
"""Queues of Arista EOS: packets that each queue marked, its greatest length by LANZ, and PFC frames of its priority."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundabout.runner.hosts.host_group import PortPlace, QueueAnswer, QueueReader
from roundabout.testbeds.rack.switch_counters.answers import MAX_QUOTED, AnswerBuilder

MARKS = "show qos interfaces ecn counters queue"
LENGTHS = "show queue-monitor length limit 1 seconds"
PAUSES = "show priority-flow-control counters detail"
# The last command's answer is one line, which ends each sample.
ANSWERED = "".join(f"{each} | json\n" for each in (MARKS, LENGTHS, PAUSES))
REQUEST = f"terminal length 0\n{ANSWERED}show version | include ^Software image version\n"
COUNTED = "random-detect ecn count in its tx-queue, and on some platforms: hardware counter feature ecn out"
REFUSED = "% "  # begin of the lines with which EOS refuses a command


def queue_reader(ssh: Sequence[str], ports: Mapping[str, PortPlace]) -> QueueReader:
    """Return the reader of a switch that `ssh` reaches."""
    return QueueReader((*ssh,), REQUEST, "Software image version", lambda text: parse(text, ports), ports)


def parse(text: str, ports: Mapping[str, PortPlace]) -> QueueAnswer:
    """Return the queues in EOS' answers. A refused command is a remark, because the user may lack its privilege."""
    builder = AnswerBuilder()
    for line in text.splitlines():
        if line.startswith(REFUSED):
            builder.remark(f"found {line!r}, expected an answer: the user of switches may lack the privilege (enable)")
    answers = builder.read_objects(text)
    lengths = next((each for each in answers if "entryList" in each), None)
    pauses = next((each for each in answers if "interfaces" in each), {})
    found = next((each for each in answers if each not in (lengths, pauses)), {})
    queues = _marks(builder, found, ports)
    for place, length in _longest(builder, lengths, ports).items():
        queues.setdefault(place, {})["watermark_bytes"] = length
    for place, frames in _pauses(builder, pauses, ports).items():
        queues.setdefault(place, {})["pauses"] = frames
    for (port, queue), counters in queues.items():
        builder.add_queue(port, queue, counters)
    return builder.build()


def _marks(
    builder: AnswerBuilder, found: dict[str, Any], ports: Mapping[str, PortPlace]
) -> dict[tuple[str, str], dict[str, int | None]]:
    """Return the marks of each port's queues. A dash stands for a queue whose marks are not counted."""
    counted: dict[tuple[str, str], dict[str, int | None]] = {}
    interfaces = builder.read_block(found, "intfQueueCounters", MARKS)
    for port in ports if interfaces else ():
        queues = builder.read_block(builder.read_block(interfaces, port, MARKS), "queueCounters", port)
        for queue, marks in queues.items():
            if marks == "-":
                builder.remark(f"no marks of {port} queue {queue}: not counted (it needs {COUNTED})")
            else:
                counted[port, queue] = {"marks": builder.read_count(marks, f"{port} queue {queue}")}
    return counted


def _pauses(
    builder: AnswerBuilder, found: dict[str, Any], ports: Mapping[str, PortPlace]
) -> dict[tuple[str, str], int | None]:
    """Return the PFC frames that each port received, by the priority, which pause the queue of its number."""
    counted: dict[tuple[str, str], int | None] = {}
    interfaces = builder.read_block(found, "interfaces", PAUSES)
    for port in ports if interfaces else ():
        priorities = builder.read_block(builder.read_block(interfaces, port, PAUSES), "priorities", port)
        for priority, frames in priorities.items():
            where = f"{port} priority {priority}"
            received = frames.get("rxFrames") if isinstance(frames, dict) else frames
            counted[port, priority] = builder.read_count(received, f"{where} rxFrames")
    return counted


def _longest(
    builder: AnswerBuilder, lengths: dict[str, Any] | None, ports: Mapping[str, PortPlace]
) -> dict[tuple[str, str], int]:
    """Return the greatest length of each queue in LANZ's events of the last second.

    LANZ has events of queues above its threshold alone.
    """
    if lengths is None or not lengths.get("lanzEnabled"):
        builder.remark("no watermark_bytes: not counted (it needs queue-monitor length)")
        return {}
    if segment := lengths.get("bytesPerTxmpSegment"):
        builder.remark(f"no watermark_bytes: this platform counts segments of {segment} bytes at most")
        return {}
    entries = lengths["entryList"]
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        builder.remark(f"entryList: found {str(entries)[:MAX_QUOTED]!r}, expected a list of objects")
        return {}
    longest: dict[tuple[str, str], int] = {}
    for each in entries:
        place = str(each.get("interface")), str(each.get("trafficClass"))
        length = builder.read_count(each.get("queueLength"), f"{place[0]} queueLength") if place[0] in ports else None
        if length is not None:
            longest[place] = max(length, longest.get(place, 0))
    return longest
