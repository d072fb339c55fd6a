# SPDX-License-Identifier: Apache-2.0
"""The collection of queues and remarks while an answer of a switch is parsed."""

import json
import re
from typing import Any

from roundabout.runner.hosts.host_group import QueueAnswer, QueueCounters

MAX_QUOTED = 60  # characters of an unexpected text that a remark repeats


class AnswerBuilder:
    """The queues and remarks that were found in an answer so far."""

    def __init__(self) -> None:
        self._queues: list[QueueCounters] = []
        self._remarks: set[str] = set()

    def add_queue(self, port: str, queue: str, counters: dict[str, int | None]) -> None:
        """Add a queue by its number, with its counters by column. None: the switch lacks the counter."""
        number = self.read_count(queue, f"{port} queue")
        known = {column: value for column, value in counters.items() if value is not None}
        if number is not None and known:
            self._queues.append(QueueCounters(port, number, known))

    def remark(self, text: str) -> None:
        """Add a remark about what the answer lacks, or about what is not understood."""
        self._remarks.add(text)

    def read_count(self, found: Any, where: str) -> int | None:
        """Return a counter's value. If it is no whole number, return None, and remark that of `where`."""
        if re.fullmatch(r"\d+", str(found)):
            return int(found)
        self.remark(f"{where}: found {str(found)[:MAX_QUOTED]!r}, expected a whole number")
        return None

    def read_object(self, text: str, where: str) -> dict[str, Any]:
        """Return the JSON object in `text`, with any text around it. Without one, remark that of `where`."""
        begin, end = text.find("{"), text.rfind("}")
        try:
            found = json.loads(text[begin : end + 1])
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        self.remark(f"{where}: found {text.strip()[:MAX_QUOTED]!r}, expected a JSON object")
        return {}

    def read_objects(self, text: str) -> list[dict[str, Any]]:
        """Return the JSON objects in `text`, with any text around and between them."""
        decoder, found, begin = json.JSONDecoder(), [], text.find("{")
        while begin >= 0:
            try:
                each, end = decoder.raw_decode(text, begin)
            except ValueError:
                each, end = None, begin + 1
            found += [each] if isinstance(each, dict) else []
            begin = text.find("{", end)
        return found

    def read_block(self, found: dict[str, Any], key: str, where: str) -> dict[str, Any]:
        """Return the object at `key` of a JSON object. Without one, remark that of `where`."""
        block = found.get(key)
        if isinstance(block, dict):
            return block
        self.remark(f"{where}: found no {key}, or no object there")
        return {}

    def build(self) -> QueueAnswer:
        """Return the answer with all queues and remarks."""
        return QueueAnswer(self._queues, frozenset(self._remarks))
