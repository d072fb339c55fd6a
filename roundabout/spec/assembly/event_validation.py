# SPDX-License-Identifier: Apache-2.0
"""Checks of the events of a trial's links."""

from operator import itemgetter

from roundabout.spec.assembly.validation import Merged
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.link_events import INTACT, LinkState
from roundabout.spec.remaining_paths import find_stalled_flow
from roundabout.spec.trial_spec import TrialSpec


def check_events(merged: Merged, spec: TrialSpec) -> None:
    """Raise SpecError for an unknown link, an event that cannot happen, or a failure that stalls flows for good."""
    if spec.reroute_after_ms is not None and not spec.events:
        raise merged.error(("reroute_after_ms",), f"{spec.reroute_after_ms:g}{merged.setting}", "events beside it")
    if spec.skip_within is not None and spec.events:
        found = f"{spec.skip_within:g} beside events{merged.setting}"
        raise merged.error(("skip_within",), found, "no events: a steady state before an event ends with it")
    states: dict[str, LinkState] = {}
    failed_by: dict[str, int] = {}
    seen: set[tuple[float, str]] = set()
    known = [link.name for link in spec.topology.links]
    for index, event in sorted(enumerate(spec.events), key=lambda each: each[1].at_ms):
        here = ("events", index)
        if event.link not in known:
            expected = f"a link of {spec.topology.name} ({list_choices(known)})"
            raise merged.error((*here, "link"), quote_value(event.link), expected, suggest(event.link, known))
        if (event.at_ms, event.link) in seen:
            found = f"a second event of {event.link} at {event.at_ms:g} ms{merged.setting}"
            raise merged.error((*here, "at_ms"), found, "one event of a link at an instant")
        seen.add((event.at_ms, event.link))
        state = states.get(event.link, INTACT)
        if event.what == "recovers" and state == INTACT:
            raise merged.error((*here, "what"), f"{event}, but it is intact{merged.setting}", "an earlier event of it")
        if event.what != "recovers" and not state.is_up:
            found = f"{event}, but it has failed{merged.setting}"
            raise merged.error((*here, "what"), found, "`recovers` before")
        states[event.link] = state.after(event)
        failed_by[event.link] = index
    failed = {link: failed_by[link] for link, state in states.items() if not state.is_up}
    if failed and (stalled := find_stalled_flow(spec, frozenset(failed))):
        raise _for_good(merged, spec, failed, stalled)


def _for_good(merged: Merged, spec: TrialSpec, failed: dict[str, int], stalled: str) -> SpecError:
    link, index = max(failed.items(), key=itemgetter(1))
    why = "routes stay without `reroute_after_ms`" if spec.reroute_after_ms is None else "no other path is left"
    found = f"{link} failing for good{merged.setting}, without which {stalled} waits for ever: {why}"
    return merged.error(("events", index, "what"), found, "`recovers` later, or another path")
