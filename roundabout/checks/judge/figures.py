# SPDX-License-Identifier: Apache-2.0
"""The list of a congestion control's quantities, which tables, `--only` and `--fail-if` use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from roundabout.core.errors import UsageError
from roundabout.spec.condition import Condition, parse_condition

Scene = Literal["alone", "cost", "fairness", "marks", "loss", "incast", "two-jobs", "three-jobs"]
SCENES: tuple[Scene, ...] = get_args(Scene)
PAIR, LINK, JOBS = SCENES[:2], SCENES[2:6], SCENES[6:]

Figures = dict[str, float | None]
"""Figures of a contestant, by quantity. None: not measured."""


class Quantity(NamedTuple):
    """A quantity: its name, the scene that measures it, its title and format in tables, and its meaning."""

    name: str
    scene: Scene
    title: str
    form: str
    about: str


ANSWERS: dict[Scene, str] = {
    "marks": "one flow whose packets are marked beyond half a millisecond",
    "loss": "one flow in a queue of five milliseconds that drops",
}
AFTER_CUT = "over the window before the cut; blank if there were fewer than two cuts"
QUANTITIES = (
    Quantity("gbps", "alone", "Gbit/s", ".2f", "rate that only this machine limits; not scaled"),
    Quantity("throughput", "alone", "over\ncubic's", ".3f", "rate of that flow over cubic's"),
    Quantity("program_ns", "cost", "ns in its\nprograms", ".0f", "the kernel's own have none"),
    Quantity("cpu_us", "cost", "us of\nCPU", ".2f", "of both ends and interrupts, at 800 Mbit/s paced"),
    Quantity("cost", "cost", "over\ncubic's", ".2f", "of that CPU"),
    *(
        quantity
        for count in (2, 8, 32)
        for quantity in (
            Quantity(
                f"jain_{count}",
                "fairness",
                f"Jain's,\n{count} flows",
                ".3f",
                "fairness index; 1 if all flows get the same",
            ),
            Quantity(
                f"use_{count}", "fairness", "use of\nthe link", ".3f", "share of the rate that the flows carry together"
            ),
        )
    ),
    *(
        quantity
        for scene, flow in ANSWERS.items()
        for quantity in (
            Quantity(f"use_{scene}", scene, "use of\nthe link", ".3f", flow),
            Quantity(f"dip_{scene}", scene, "slowest\nover mean", ".2f", "the slowest of ten tenths of a second"),
            Quantity(f"window_{scene}", scene, "window\nafter cut", ".2f", AFTER_CUT),
            Quantity(f"queue_{scene}_ms", scene, "round\ntrip, ms", ".2f", "includes the queue that the flow leaves"),
        )
    ),
    Quantity("marked", "marks", "packets\nmarked", ".3f", "as a share"),
    Quantity("lost", "loss", "sent\nagain", ".4f", "as a share of segments"),
    Quantity(
        "incast",
        "incast",
        "time of 16\nover least",
        ".2f",
        "answers; what the link needs for their bytes, where it drops",
    ),
    *(
        quantity
        for scene in JOBS
        for prefix in (scene.replace("-", "_"),)
        for quantity in (
            Quantity(f"{prefix}_interleaved", scene, "interleaved\nafter", ".0f", "iterations; blank: never"),
            Quantity(f"{prefix}_mean", scene, "mean over\nalone", ".3f", "of the last half of the iterations"),
            Quantity(f"{prefix}_worst", scene, "worst over\nalone", ".3f", "more than the others': it is hurt"),
        )
    ),
)
NAMES = tuple(each.name for each in QUANTITIES)


def parse_measured_condition(text: str, scenes: Sequence[Scene]) -> Condition:
    """Parse a condition of `--fail-if`. Raises UsageError if it is malformed, or if `scenes` do not measure it."""
    condition = parse_condition(text, NAMES)
    scene = next(each.scene for each in QUANTITIES if each.name == condition.quantity)
    if scene not in scenes:
        raise UsageError(f"--fail-if: found {condition.quantity}, which {scene} measures, expected that among --only")
    return condition


def failed_conditions(conditions: Iterable[Condition], figures: Figures) -> list[Condition]:
    """Return the conditions that are met, and those whose figure is missing, so that an unmeasured program fails."""
    values = ((each, figures.get(each.quantity)) for each in conditions)
    return [each for each, value in values if value is None or each.is_met(value)]


def add_ratios_to_cubic(figures: Mapping[str, Figures]) -> None:
    """Add each contestant's ratios to cubic's figures to `figures`. Without a positive figure there is no ratio."""
    for name, of in (("throughput", "gbps"), ("cost", "cpu_us")):
        cubic = figures["cubic"].get(of)
        for each in figures.values():
            own = each.get(of)
            if of in each:
                each[name] = own / cubic if own and cubic and min(own, cubic) > 0 else None
