# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: the same variants, levels and jobs, and how much quicker one is than the other."""

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.reading.cells import Measured, label, measured, speedup
from analysis.reading.fidelity import fidelity
from analysis.render.screen import figure
from analysis.summary import stored_or_new
from roundabout.errors import RoundaboutError
from roundabout.store import Run


class CompareError(RoundaboutError):
    """The two runs cannot be compared."""


def compare(one: Run, other: Run, *, mixed: bool = False) -> dict[str, Any]:
    """Every cell that both runs have: its median in each, and the speed-up of `other` over `one` with its interval.

    Raises CompareError where the runs share no cell, and, unless `mixed`, where one is real and the other is not, say.
    """
    summaries = [stored_or_new(run) for run in (one, other)]
    natures = [fidelity(summary["testbed"]).nature for summary in summaries]
    if natures[0] != natures[1] and not mixed:
        raise CompareError(
            f"{one.id} is {natures[0]} and {other.id} is {natures[1]}",
            f"what was {natures[0]} is not what was {natures[1]}; say --mixed to compare them all the same",
        )
    pairs = _pairs(measured(one), measured(other))
    if not pairs:
        raise CompareError(
            f"{one.id} and {other.id} have no variant, levels and job in common",
            "compare runs of one experiment, or of experiments that share variants",
        )
    cells = [{_place(cell): cell for cell in summary["cells"]} for summary in summaries]
    return {
        "runs": [
            {"experiment": summary["experiment"], "run": summary["run"], "testbed": summary["testbed"]}
            for summary in summaries
        ],
        "cells": [_compared(*pair, *cells) for pair in pairs],
    }


def table(comparison: dict[str, Any]) -> RenderableType:
    """A comparison for the screen, made for 100 columns."""
    one, other = comparison["runs"]
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    result.title = "Median iteration time in ms, with 95 % intervals"
    for name in ("", "job"):
        result.add_column(name)
    for name in ("A", "B", "speed-up\nof B over A"):
        result.add_column(name, justify="right")
    result.add_column("")
    for cell in comparison["cells"]:
        result.add_row(
            label(cell["variant"], cell["levels"]),
            cell["job"],
            *(figure(cell[side]["median_ms"], cell[side]["median_ci95_ms"], 1) for side in ("a", "b")),
            figure(cell["speedup"], cell["speedup_ci95"], 3),
            _reading(cell["speedup_ci95"]),
        )
    lines = [Text(f"{name}  {_about(run)}") for name, run in (("A", one), ("B", other))]
    natures = [fidelity(run["testbed"]).nature for run in (one, other)]
    if natures[0] != natures[1]:
        differ = "their figures differ in more than the runs"
        lines.append(Text(f"one of them was {natures[0]}, the other was {natures[1]}: {differ}", "yellow"))
    return Group(*lines, result)


def _pairs(one: list[Measured], other: list[Measured]) -> list[tuple[Measured, Measured, str]]:
    return [
        (a, b, job)
        for a in one
        for b in other
        if (a.variant, a.levels) == (b.variant, b.levels)
        for job in a.times
        if job in b.times
    ]


def _compared(one: Measured, other: Measured, job: str, a: dict[Any, Any], b: dict[Any, Any]) -> dict[str, Any]:
    here = {"variant": one.variant, "levels": one.levels, "job": job}
    names = ("repetitions", "iterations", "median_ms", "median_ci95_ms")
    effect = speedup(one, other, job)
    assert effect is not None
    return {
        **here,
        "a": {name: a[_place(here)][name] for name in names},
        "b": {name: b[_place(here)][name] for name in names},
        "speedup": effect[0],
        "speedup_ci95": effect[1],
    }


def _place(cell: dict[str, Any]) -> tuple[str, frozenset[tuple[str, Any]], str]:
    return cell["variant"], frozenset(cell["levels"].items()), cell["job"]


def _reading(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "[dim]not measured[/]"
    if interval[0] > 1:
        return "B is quicker"
    return "A is quicker" if interval[1] < 1 else "[dim]no difference shown[/]"


def _about(run: dict[str, Any]) -> str:
    return f"{run['experiment']} {run['run']} ({fidelity(run['testbed']).stamp})"
