# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the figures of a congestion control, compared with its peers' figures of the same run.

The bounds are this project's choice. They are wide, so they detect broken behavior but do not rank congestion controls.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from roundabout.checks.check import Verdict, compare
from roundabout.checks.judge.figures import QUANTITIES, Figures

Limit = Callable[[list[float]], float | None]  # the limit by the peers' figures; None without a limit


class _Rule(NamedTuple):
    """A rule on a quantity: what the figure shows, the format of its values, and its lower or upper limit."""

    quantity: str
    of: str
    form: str
    least: Limit | None = None
    most: Limit | None = None

    def judge(self, value: float, peers: list[float]) -> Verdict:
        """Return the verdict on a figure beside those of the peers."""
        least, most = (limit and limit(peers) for limit in (self.least, self.most))
        return compare(self.of, self.quantity, (value, None), least=least, most=most, form=self.form)


def _constant(limit: float) -> Limit:
    return lambda _: limit


def _of_highest_peer(factor: float, more: float = 0.0) -> Limit:
    """Return a limit of `factor` times the highest figure of a peer, plus `more`; none without peers."""
    return lambda peers: factor * max(peers) + more if peers else None


def _tenth_of_lowest_peer(peers: list[float]) -> float:
    return 0.1 * min(peers, default=0)


def _lowest_fair_index(peers: list[float]) -> float:
    return min([0.9, *peers])


RULES = (
    _Rule("throughput", "rate over cubic's", ".0%", least=_constant(0.9)),
    _Rule("gbps", "its window grows: Gbit/s", ".2f", least=_tenth_of_lowest_peer),
    _Rule("cost", "CPU time of an ACK over cubic's", ".2f", most=_constant(1.5)),
    _Rule("jain_8", "8 flows share evenly: Jain's index", ".2f", least=_lowest_fair_index),
    _Rule("jain_32", "32 flows share evenly: Jain's index", ".2f", least=_lowest_fair_index),
    _Rule("queue_marks_ms", "it answers marks: round trip, ms", ".1f", most=_of_highest_peer(3, 1)),
    _Rule("use_marks", "marks leave it the link: use", ".0%", least=_constant(0.8)),
    _Rule("use_loss", "losses leave it the link: use", ".0%", least=_constant(0.7)),
    _Rule("lost", "it answers losses: share sent again", ".2%", most=_of_highest_peer(5, 0.01)),
    _Rule("incast", "time of an incast over the link's", ".1f", most=_of_highest_peer(2)),
    _Rule("two_jobs_worst", "no job of two is hurt: worst over alone", ".2f", most=_of_highest_peer(1.05)),
    _Rule("three_jobs_worst", "no job of three is hurt: worst over alone", ".2f", most=_of_highest_peer(1.05)),
)
SCENE_OF = {each.name: each.scene for each in QUANTITIES}
UNCONDITIONAL = ("gbps", "jain_8", "use_marks", "use_loss", "incast")
"""Quantities of which every congestion control that sends has a verdict."""


def verdicts(judged: Figures, peers: Mapping[str, Figures]) -> dict[str, list[Verdict]]:
    """Return the verdicts on the judged congestion control by scene.

    Figures that were not measured have no verdict.
    """
    found: dict[str, list[Verdict]] = {SCENE_OF[name]: [] for name in SCENE_OF if name in judged}
    for rule in RULES:
        value, scene = judged.get(rule.quantity), SCENE_OF[rule.quantity]
        if value is not None:
            others = [other for each in peers.values() if (other := each.get(rule.quantity)) is not None]
            found[scene].append(rule.judge(value, others))
        elif rule.quantity in judged and rule.quantity in UNCONDITIONAL:
            found[scene].append(Verdict(rule.of, rule.quantity, "no figure: its flows got stuck", "a figure", "fail"))
    return found
