# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the figures of a congestion control, compared with its peers' figures of the same run.

The bounds are this project's choice. They are wide, so they detect broken behavior but do not rank congestion controls.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from roundabout.core.verdict_words import Word, pass_or_fail
from roundabout.judge.figures import Figures

FigureTest = Callable[[float, list[float]], bool]


class Verdict(NamedTuple):
    """A verdict, and the sentence that says of what it is."""

    verdict: Word
    words: str


class _Rule(NamedTuple):
    """A rule on one quantity. `is_good` takes the figure and those of the peers; the words take the figure."""

    quantity: str
    is_good: FigureTest
    good: str
    bad: str


def _at_least(bound: float) -> FigureTest:
    return lambda value, _: value >= bound


def _at_most(bound: float) -> FigureTest:
    return lambda value, _: value <= bound


def _fair(value: float, peers: list[float]) -> bool:
    return value >= min([0.9, *peers])


RULES = (
    _Rule("throughput", _at_least(0.9), "carries {:.0%} of what cubic does", "carries {:.0%} of what cubic does"),
    _Rule("gbps", lambda value, peers: value >= 0.1 * min(peers, default=0), "", "its window does not grow"),
    _Rule("cost", _at_most(1.5), "an ACK costs {:.2f} times cubic's", "an ACK costs {:.2f} times cubic's"),
    _Rule("jain_8", _fair, "8 flows share evenly ({:.2f})", "8 flows do not share evenly ({:.2f})"),
    _Rule("jain_32", _fair, "32 flows share evenly ({:.2f})", "32 flows do not share evenly ({:.2f})"),
    _Rule(
        "queue_marks_ms",
        lambda value, peers: value <= 3 * max(peers, default=value) + 1,
        "answers marks: they leave a round trip of {:.1f} ms",
        "ignores marks: they leave a round trip of {:.1f} ms",
    ),
    _Rule("use_marks", _at_least(0.8), "", "marks cost it the link: it uses {:.0%}"),
    _Rule("use_loss", _at_least(0.7), "", "losses cost it the link: it uses {:.0%}"),
    _Rule(
        "lost",
        lambda value, peers: value <= 5 * max(peers, default=value) + 0.01,
        "answers losses: {:.2%} is sent again",
        "does not answer losses: {:.2%} is sent again",
    ),
    _Rule(
        "incast",
        lambda value, peers: value <= 2 * max(peers, default=value),
        "an incast takes {:.1f} times the link's time",
        "an incast takes {:.1f} times the link's time",
    ),
    *(
        _Rule(
            f"{jobs}_worst",
            lambda value, peers: value <= 1.05 * max(peers, default=value),
            f"no job of {count} is hurt: the worst takes {{:.2f}} times its time alone",
            f"of {count} jobs one is hurt: it takes {{:.2f}} times its time alone",
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
                found.append(Verdict("fail", f"{rule.quantity} could not be told: its flows got stuck"))
            continue
        others = [other for each in peers.values() if (other := each.get(rule.quantity)) is not None]
        good = rule.is_good(value, others)
        words = (rule.good if good else rule.bad).format(value)
        if words:
            found.append(Verdict(pass_or_fail(good), words))
    return found
