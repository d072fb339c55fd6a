# SPDX-License-Identifier: Apache-2.0
"""Running exporters: one program for each host or switch, which answers queries on its stdin."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Channel, LostHostError
from roundabout.runner.hosts.programs import limit_answer_time
from roundabout.runner.testbed import ExporterTarget

ANSWER_S, END_S = 10, 5
AGAIN_S = 15  # least seconds between attempts to start an exporter on a lost host
AT_ONCE = 32
END = b"# EOF\n"

ExporterAddress = tuple[str, str]
"""The name of a site, and the name of one of its hosts or switches."""


class Exporter:
    """A running exporter, until its connection is lost or it is closed."""

    def __init__(self, what: ExporterTarget) -> None:
        """Connect to the node and start the exporter. Raises LostHostError."""
        self.what, self.lost = what, False
        self._lock = threading.Lock()
        self._connection = what.connect()
        try:
            self._channel: Channel = self._connection.start(what.argv)
            self.beside: list[str] = json.loads(self._read_until(json.dumps(what.facts), b"\n"))
        except (RoundaboutError, ValueError) as error:
            self._connection.close()
            raise LostHostError(what.node, f"its exporter did not start: {error}") from error

    def query(self, question: str) -> bytes:
        """Send `question` to the exporter and return its answer, metrics as text. Raises LostHostError."""
        with self._lock:
            if self.lost:
                raise LostHostError(self.what.node, "its exporter ended")
            try:
                return self._read_until(question, END)
            except RoundaboutError:
                self.lost = True
                raise

    def close(self) -> None:
        """Close the exporter's stdin, and wait for its end."""
        with self._lock, suppress(RoundaboutError):
            if not self.lost:
                self.lost = True
                with limit_answer_time(self._connection, self._channel, END_S, "ending its exporter"):
                    self._channel.close_stdin()
                    self._why_ended()
        self._connection.close()

    def _read_until(self, line: str, end: bytes) -> bytes:
        with limit_answer_time(self._connection, self._channel, ANSWER_S, "its exporter"):
            self._channel.write(f"{line}\n".encode())
            answer = b""
            while not answer.endswith(end):
                if not (chunk := self._channel.read()):
                    raise LostHostError(self.what.node, f"its exporter ended: {self._why_ended()}")
                answer += chunk
        return answer

    def _why_ended(self) -> str:
        for _ in iter(self._channel.read, b""):
            pass
        status, said = self._channel.result()
        return said.splitlines()[-1] if said else f"exit status {status}"


class ExporterPool:
    """The exporters of all existing nodes. `standing` returns the current targets and is called repeatedly."""

    def __init__(self, standing: Callable[[], Iterable[ExporterTarget]]) -> None:
        self._standing = standing
        self._wanted: Mapping[ExporterAddress, ExporterTarget] = {}
        self._running: dict[ExporterAddress, Exporter] = {}
        self._tried_s: dict[ExporterAddress, float] = {}
        self._refused: dict[ExporterAddress, str] = {}

    def update(self) -> None:
        """Start missing exporters, and end those of removed nodes. Only one thread may call this method."""
        self._wanted = {(each.site, each.node): each for each in self._standing()}
        gone = [place for place, exporter in self._running.items() if self._is_over(place, exporter)]
        missing = [place for place in self._wanted if place in gone or self._may_start(place)]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="exporter") as pool:
            list(pool.map(Exporter.close, [self._running.pop(place) for place in gone]))
            list(pool.map(self._start, missing))

    def addresses(self) -> dict[ExporterAddress, list[str]]:
        """Return the address of each node, and the names of other projects' exporters on it."""
        running = dict(self._running)
        return {place: running[place].beside if place in running else [] for place in self._wanted}

    def query(self, place: ExporterAddress, question: str) -> bytes:
        """Send `question` to the exporter at `place` and return its answer. Raises LostHostError."""
        exporter = self._running.get(place)  # another thread may remove it at any time
        if exporter is None:
            raise LostHostError(place[1], self._refused.get(place, "it has no exporter yet"))
        return exporter.query(question)

    def close(self) -> None:
        """End all exporters of the pool."""
        self._standing = tuple
        self.update()

    def _is_over(self, place: ExporterAddress, exporter: Exporter) -> bool:
        wanted = self._wanted.get(place)
        return exporter.lost or wanted is None or wanted.argv != exporter.what.argv

    def _may_start(self, place: ExporterAddress) -> bool:
        return place not in self._running and time.monotonic() - self._tried_s.get(place, -AGAIN_S) >= AGAIN_S

    def _start(self, place: ExporterAddress) -> None:
        self._tried_s[place] = time.monotonic()
        try:
            self._running[place] = Exporter(self._wanted[place])
        except RoundaboutError as error:
            self._refused[place] = error.message
