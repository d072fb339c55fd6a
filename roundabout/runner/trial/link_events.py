# SPDX-License-Identifier: Apache-2.0
"""Events of links during a trial on hosts: a thread plays them, and all links and routes are restored at the end."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.machine.undo_journal import apply_to_each, raise_together
from roundabout.spec import TrialSpec
from roundabout.spec.link_events import INTACT

MAX_LATE_MS = 50.0
"""How late a link may change, in ms of this machine. A guess: a change takes some ms, and CPU time may be short."""

Log = Callable[..., None]


class _Step(NamedTuple):
    at_ns: int  # of the run's clock
    text: str
    change: Callable[[], None]


class LinkEventPlayer:
    """The player of a trial's events.

    `faults` has what went wrong, `late` the changes that came late, and `lost` the packets that links lost by events.
    """

    def __init__(self, site: HostGroup, spec: TrialSpec, clock: RunClock, log: Log) -> None:
        self.faults: list[str] = []
        self.late: list[str] = []
        self.lost: dict[str, int] = {}
        self._site, self._spec, self._clock, self._log = site, spec, clock, log
        self._links = tuple(dict.fromkeys(event.link for event in spec.events))
        self._stop = threading.Event()

    @contextmanager
    def playing(self, start_ns: int) -> Iterator[None]:
        """Play the events from the trial's agreed start on. At the end, restore links and routes in reverse order."""
        before = self._site.count_lost(self._links)
        thread = threading.Thread(target=self._play, args=(self._steps(start_ns),), name="link-events", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._restore()
            after = self._site.count_lost(self._links)
            self.lost = {link: count - before.get(link, 0) for link, count in after.items()}

    def _steps(self, start_ns: int) -> list[_Step]:
        def at_ns(paper_ms: float) -> int:
            return start_ns + round(self._site.ms_on_host(paper_ms) * 1e6)

        links = [
            _Step(at_ns(at_ms), f"{link}: {state}", partial(self._site.set_link, self._spec, link, state))
            for at_ms, link, state in self._spec.link_changes
        ]
        routes = [
            _Step(
                at_ns(at_ms),
                f"routes avoid {', '.join(sorted(failed)) or 'no link'}",
                partial(self._site.set_routes, self._spec, failed),
            )
            for at_ms, failed in self._spec.route_changes
        ]
        return sorted([*links, *routes], key=attrgetter("at_ns"))

    def _play(self, steps: list[_Step]) -> None:
        for step in steps:
            if self._stop.wait(max((step.at_ns - self._clock.now_ns()) / 1e9, 0.0)):
                return
            try:
                step.change()
            except RoundaboutError as error:
                self.faults.append(f"events: {step.text}: {error}")
                return
            late_ms = (self._clock.now_ns() - step.at_ns) / 1e6
            self._log("link event", step.at_ns, change=step.text, late_ms=round(late_ms, 3))
            if late_ms > MAX_LATE_MS:
                self.late.append(f"events: {step.text} came {late_ms:.0f} ms late (limit {MAX_LATE_MS:.0f})")

    def _restore(self) -> None:
        steps = [partial(self._site.set_link, self._spec, link, INTACT) for link in reversed(self._links)]
        if self._spec.route_changes:
            steps.insert(0, partial(self._site.set_routes, self._spec, frozenset()))
        raise_together(apply_to_each(lambda restore: restore(), steps))
