# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the figures of a congestion control, compared with its peers' figures of the same run.

The bounds are this project's choice. They are wide, so they detect broken behavior but do not rank congestion controls.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from roundabout.core.verdict_words import Word, pass_or_fail
from roundabout.judge.figures import Figures

Limit = Callable[[list[float]], float | None]  # the limit by the peers' figures; None without a limit


class Verdict(NamedTuple):
    """A verdict, and the sentence that says of what it is."""

    verdict: Word
    words: str


class _Rule(NamedTuple):
    """A rule on a quantity: the figure is at least, or at most, a limit. `form` formats both; words take the figure."""

    quantity: str
    side: Literal["at least", "at most"]
    limit: Limit
    form: str
    good: str
    bad: str

    def is_good(self, value: float, limit: float | None) -> bool:
        """Return True if a figure is on the good side of the limit."""
        return limit is None or (value >= limit if self.side == "at least" else value <= limit)

    def describe(self, value: float, limit: float | None) -> str:
        """Return the rule's words on a figure, with the limit; empty for a rule that has no words on it."""
        words = self.good if self.is_good(value, limit) else self.bad
        if not words or limit is None:
            return words.format(format(value, self.form))
        return f"{words.format(format(value, self.form))} ({self.side} {limit:{self.form}})"


def _constant(limit: float) -> Limit:
    return lambda _: limit


def _of_highest_peer(factor: float, more: float = 0.0) -> Limit:
    """Return a limit of `factor` times the highest figure of a peer, plus `more`; none without peers."""
    return lambda peers: factor * max(peers) + more if peers else None


def _tenth_of_lowest_peer(peers: list[float]) -> float:
    return 0.1 * min(peers, default=0)


def _lowest_fair_index(peers: list[float]) -> float:
    return min([0.9, *peers])


CARRIES = "carries {} of what cubic does"
COSTS = "an ACK costs {} times cubic's"
INCAST = "an incast takes {} times the link's time"
RULES = (
    _Rule("throughput", "at least", _constant(0.9), ".0%", CARRIES, CARRIES),
    _Rule("gbps", "at least", _tenth_of_lowest_peer, ".2f", "", "its window does not grow: {} Gbit/s"),
    _Rule("cost", "at most", _constant(1.5), ".2f", COSTS, COSTS),
    *(
        _Rule(
            f"jain_{flows}",
            "at least",
            _lowest_fair_index,
            ".2f",
            f"{flows} flows share evenly: Jain's index {{}}",
            f"{flows} flows do not share evenly: Jain's index {{}}",
        )
        for flows in (8, 32)
    ),
    _Rule(
        "queue_marks_ms",
        "at most",
        _of_highest_peer(3, 1),
        ".1f",
        "answers marks: the round trip, in ms, is {}",
        "ignores marks: the round trip, in ms, is {}",
    ),
    _Rule("use_marks", "at least", _constant(0.8), ".0%", "", "marks cost it the link: it uses {}"),
    _Rule("use_loss", "at least", _constant(0.7), ".0%", "", "losses cost it the link: it uses {}"),
    _Rule(
        "lost",
        "at most",
        _of_highest_peer(5, 0.01),
        ".2%",
        "answers losses: {} is sent again",
        "does not answer losses: {} is sent again",
    ),
    _Rule("incast", "at most", _of_highest_peer(2), ".1f", INCAST, INCAST),
    *(
        _Rule(
            f"{jobs}_worst",
            "at most",
            _of_highest_peer(1.05),
            ".2f",
            f"no job of {count} is hurt: time of the worst over its time alone {{}}",
            f"of {count} jobs one is hurt: its time over that alone {{}}",
        )
        for jobs, count in (("two_jobs", "two"), ("three_jobs", "three"))
    ),
)


UNCONDITIONAL = ("gbps", "jain_8", "use_marks", "use_loss", "incast")
"""Quantities of which every congestion control that sends has a verdict."""


def verdicts(judged: Figures, peers: Mapping[str, Figures]) -> list[Verdict]:
    """Return the verdicts on the judged congestion control. Figures that were not measured have no verdict."""
    found = []
    for rule in RULES:
        value = judged.get(rule.quantity)
        if value is None:
            if rule.quantity in judged and rule.quantity in UNCONDITIONAL:
                found.append(Verdict("fail", f"{rule.quantity} has no value: its flows got stuck"))
            continue
        others = [other for each in peers.values() if (other := each.get(rule.quantity)) is not None]
        limit = rule.limit(others)
        if words := rule.describe(value, limit):
            found.append(Verdict(pass_or_fail(rule.is_good(value, limit)), words))
    return found
