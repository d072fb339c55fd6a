# SPDX-License-Identifier: Apache-2.0
"""Events of links during a trial: failures, recoveries, losses and lower rates, and the routes that follow them."""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from roundabout.spec.base import Name, NotNegative, Strict, drop_defaults

WITH_SHARE = ("loses", "slows")


class LinkEvent(Strict):
    """A change of both directions of a link at an instant.

    A link that `fails` carries nothing. One that `recovers` is as the topology says, whatever it had.
    """

    at_ms: NotNegative = Field(description="instant, after the trial's agreed start")
    link: Name = Field(description="name of the link")
    what: Literal["fails", "recovers", "loses", "slows"] = Field(
        description="`fails`: carries nothing; `loses`: loses packets at random; `slows`: has a lower rate; "
        "`recovers`: is as the topology says again"
    )
    share: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="of packets that the link `loses`, or of its rate that is left when it `slows`"
    )

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return drop_defaults({"share": None}, handler(self))

    @model_validator(mode="after")
    def _share_where_one_counts(self) -> Self:
        if (self.share is None) == (self.what in WITH_SHARE):
            raise ValueError(f"a `share` with {' and '.join(WITH_SHARE)} alone")
        return self

    def __str__(self) -> str:
        share = "" if self.share is None else f" {self.share:g}"
        return f"{self.link} {self.what}{share} at {self.at_ms:g} ms"


class LinkState(NamedTuple):
    """The state of a link at an instant: its loss as a share of packets, and its rate as a share of the topology's."""

    is_up: bool = True
    loss: float = 0.0
    rate: float = 1.0

    def after(self, event: LinkEvent) -> "LinkState":
        """Return the state after an event."""
        if event.what == "recovers":
            return INTACT
        if event.what == "fails" or event.share is None:
            return self._replace(is_up=False)
        return self._replace(loss=event.share) if event.what == "loses" else self._replace(rate=event.share)


INTACT = LinkState()


class LinkChange(NamedTuple):
    """The state of a link from an instant on."""

    at_ms: float
    link: str
    state: LinkState


class RouteChange(NamedTuple):
    """The links that routes avoid from an instant on."""

    at_ms: float
    failed: frozenset[str]


def list_link_changes(events: Iterable[LinkEvent]) -> Iterator[LinkChange]:
    """Yield the state of an event's link after each event, in the order of instants."""
    states: dict[str, LinkState] = {}
    for event in sorted(events, key=attrgetter("at_ms")):
        states[event.link] = states.get(event.link, INTACT).after(event)
        yield LinkChange(event.at_ms, event.link, states[event.link])


def list_route_changes(events: Iterable[LinkEvent], after_ms: float) -> Iterator[RouteChange]:
    """Yield the failed links that routes avoid from each instant on, `after_ms` after links fail or recover."""
    failed: frozenset[str] = frozenset()
    for at_ms, link, state in list_link_changes(events):
        found = failed - {link} if state.is_up else failed | {link}
        if found != failed:
            failed = found
            yield RouteChange(at_ms + after_ms, failed)
