# SPDX-License-Identifier: Apache-2.0
"""Events of links on a site that notes what is done to it: they come in order, and all is restored."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.host_group import Scaling
from roundabout.runner.trial.link_events import LinkEventPlayer
from roundabout.spec import TrialSpec
from roundabout.spec.link_events import INTACT, LinkState
from tests.event_trials import event_trial

pytestmark = pytest.mark.unit

LINKS = ("leaf0-spine0", "leaf1-spine1")


class Site(Scaling):
    """A site that notes changes of links and routes, and refuses the `broken` ones: events, or also restoration."""

    scale, dilation = 100.0, 2.0

    def __init__(self, broken: Literal["", "events", "links"] = "") -> None:
        self.done: list[tuple[Any, ...]] = []
        self.changed = threading.Semaphore(0)
        self._broken, self._lost = broken, 0

    def set_link(self, _trial: TrialSpec, link: str, state: LinkState) -> None:
        if self._broken == "links" or (self._broken and state != INTACT):
            self._note(link, state)
            raise RoundaboutError("the switch is gone")
        self._lost += not state.is_up
        self._note(link, state)

    def set_routes(self, _trial: TrialSpec, failed: frozenset[str]) -> None:
        self._note("routes", failed)

    def count_lost(self, links: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(links, self._lost)

    def _note(self, *what: Any) -> None:
        self.done.append(what)
        self.changed.release()


def trial() -> TrialSpec:
    events = [
        {"at_ms": 1, "link": LINKS[0], "what": "fails"},
        {"at_ms": 2, "link": LINKS[1], "what": "loses", "share": 0.1},
        {"at_ms": 3_600_000, "link": LINKS[0], "what": "recovers"},
    ]
    return event_trial(*events, reroute_after_ms=5)


def test_events_come_in_order_and_are_undone_in_reverse() -> None:
    site, clock, logged = Site(), RunClock.start(), []
    player = LinkEventPlayer(site, trial(), clock, lambda *event, **details: logged.append((event, details)))
    with player.playing(clock.now_ns()):
        for _ in range(3):
            assert site.changed.acquire(timeout=60)
    assert site.done == [
        (LINKS[0], LinkState(is_up=False)),
        (LINKS[1], LinkState(loss=0.1)),
        ("routes", frozenset({LINKS[0]})),
        ("routes", frozenset()),
        (LINKS[1], INTACT),
        (LINKS[0], INTACT),
    ]
    assert player.faults == []
    assert player.lost == dict.fromkeys(LINKS, 1)
    assert len(logged) == 3


def test_links_are_restored_if_a_trial_is_interrupted() -> None:
    site, clock = Site(), RunClock.start()
    player = LinkEventPlayer(site, trial(), clock, lambda *_event, **_details: None)
    with suppress(KeyboardInterrupt), player.playing(clock.now_ns()):
        assert site.changed.acquire(timeout=60)
        raise KeyboardInterrupt
    assert site.done[-3:] == [("routes", frozenset()), (LINKS[1], INTACT), (LINKS[0], INTACT)]


def test_an_event_that_a_site_refuses_is_a_fault() -> None:
    site, clock = Site("events"), RunClock.start()
    player = LinkEventPlayer(site, trial(), clock, lambda *_event, **_details: None)
    with player.playing(clock.now_ns()):
        assert site.changed.acquire(timeout=60)
    assert "the switch is gone" in player.faults[0]


def test_all_links_are_restored_even_if_one_refuses() -> None:
    site, clock = Site("links"), RunClock.start()
    player = LinkEventPlayer(site, trial(), clock, lambda *_event, **_details: None)
    with pytest.raises(RoundaboutError, match="the switch is gone"), player.playing(clock.now_ns()):
        pass
    assert site.done[-2:] == [(LINKS[1], INTACT), (LINKS[0], INTACT)]
