# SPDX-License-Identifier: Apache-2.0
"""Samples of switches' queues in a trial, once a second, for the table of ports' queues.

A switch that cannot be read, or that lacks a counter, does not end a trial: trial.json and a notice name it.
"""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from roundabout.runner.hosts.connections import Channel, LocalConnection
from roundabout.runner.hosts.host_group import QueueAnswer, QueueReader

PERIOD_S = 1.0
END_TIMEOUT_S = 2.0  # time limit of an answer that is under way at the end of a trial
FIRST_TIMEOUT_S, LOOK_S = 15.0, 0.05  # time limit of the first answer, with the connection; between two looks at it


class Sample(NamedTuple):
    """An answer of a switch, between two readings of the controller's monotonic clock."""

    before_ns: int
    after_ns: int
    answer: QueueAnswer


@dataclass
class SwitchQueues:
    """The answers of one switch in a trial, and the reason why it was not read, or not to the trial's end."""

    reader: QueueReader | None
    fault: str | None = None
    texts: list[tuple[int, int, str]] = field(default_factory=list)

    @cached_property
    def samples(self) -> list[Sample]:
        """Return the parsed answers. Read it only after the trial, because parsing takes CPU."""
        reader = self.reader
        return [Sample(before, after, reader.parse(text)) for before, after, text in self.texts] if reader else []

    def rows(self) -> list[dict[str, Any]]:
        """Return the columns of each queue in each answer, and `at_ns` on the controller's monotonic clock."""
        return [
            {"at_ns": (sample.before_ns + sample.after_ns) // 2, **self._place(each.port), "queue": each.queue}
            | dict(each.counters)
            for sample in self.samples
            for each in sample.answer.queues
        ]

    def _place(self, port: str) -> dict[str, str]:
        assert self.reader
        return {"interface": port, **self.reader.ports[port]._asdict()}

    @property
    def remarks(self) -> Counter[str]:
        """Return how many answers each remark is about."""
        return Counter(remark for sample in self.samples for remark in sorted(sample.answer.remarks))

    def as_json(self) -> dict[str, Any]:
        """Return the quality of the samples, as trial.json stores it."""
        instants = [sample.before_ns for sample in self.samples]
        periods_ms = [(after - before) / 1e6 for before, after in pairwise(instants)]
        period_ms = median(periods_ms) if periods_ms else None
        return {
            "samples": len(instants),
            "period_median_ms": period_ms,
            "fault": self.fault,
            "remarks": dict(self.remarks),
        }


@contextmanager
def sample_switches(
    readers: Mapping[str, QueueReader | str], into: dict[str, SwitchQueues], period_s: float = PERIOD_S
) -> Iterator[None]:
    """Read the queues of switches every `period_s` for the duration of the block, and add them to `into`."""
    ended = threading.Event()
    connection = LocalConnection()
    followed: list[tuple[Channel, threading.Thread]] = []
    try:
        for switch, reader in readers.items():
            if isinstance(reader, str):
                into[switch] = SwitchQueues(None, reader)
                continue
            into[switch] = SwitchQueues(reader)
            channel = connection.start(reader.argv)
            arguments = (into[switch], reader, channel, ended, period_s)
            thread = threading.Thread(target=_follow, args=arguments, name=f"queues@{switch}", daemon=True)
            thread.start()
            followed.append((channel, thread))
        yield
    finally:
        ended.set()
        deadline_s = time.monotonic() + END_TIMEOUT_S
        for channel, thread in followed:
            thread.join(max(0.0, deadline_s - time.monotonic()))
            channel.close()
            thread.join()
        connection.close()


def read_once(readers: Mapping[str, QueueReader | str], timeout_s: float = FIRST_TIMEOUT_S) -> dict[str, SwitchQueues]:
    """Read the queues of each switch once, so that what it lacks or refuses is known before a trial."""
    found: dict[str, SwitchQueues] = {}
    deadline_s = time.monotonic() + timeout_s
    with sample_switches(readers, found):
        while not all(each.fault or each.texts for each in found.values()) and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)
    return found


def _follow(
    queues: SwitchQueues, reader: QueueReader, channel: Channel, ended: threading.Event, period_s: float
) -> None:
    """Request an answer each period until `ended`, or until the command ends by itself, which is the switch's fault."""
    while not ended.is_set():
        before_ns = time.monotonic_ns()
        channel.write(reader.request.encode())
        text = _read_answer(channel, reader.last_line)
        if text is None:
            break
        queues.texts.append((before_ns, time.monotonic_ns(), text))
        ended.wait(max(0.0, period_s - (time.monotonic_ns() - before_ns) / 1e9))
    was_stopped = ended.is_set()
    channel.close_stdin()  # by the thread that writes to it
    status, stderr = channel.result()
    if not was_stopped:
        queues.fault = stderr.splitlines()[-1] if stderr else f"exit status {status}"
    elif not queues.texts:
        queues.fault = "no answer"


def _read_answer(channel: Channel, last_line: str) -> str | None:
    """Return the lines up to one that has the pattern `last_line`, or None if stdout ends before it."""
    text = b""
    pattern = re.compile(rf"^{last_line}.*\n\Z".encode(), re.MULTILINE)
    while chunk := channel.read():
        text += chunk
        if pattern.search(text):
            return text.decode(errors="replace")
    return None


def describe_gaps(switches: Mapping[str, SwitchQueues]) -> str | None:
    """Return a notice about switches that were not read, and about counters that they lack. None if there are none."""
    found = [f"{switch}: {queues.fault}" for switch, queues in switches.items() if queues.fault]
    found += [f"{switch}: {remark}" for switch, queues in switches.items() for remark in queues.remarks]
    return f"queues of switches: {'; '.join(found)}" if found else None
