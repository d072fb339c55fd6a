# SPDX-License-Identifier: Apache-2.0
"""Sweeps on the screen, made for 80 columns: one table a job and kind of cross traffic, and what follows from it."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

UNITS = ("Gbit/s\non the wire", "mean, s", "", "p99, s", "times\nno load", "fluid\nlimit, s")


def sweep_tables(sweeps: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """For each sweep its levels, its fit and its congestion point beside the thesis'."""
    title = Text("Iteration time under cross traffic, with 95 % intervals", style="bold")
    return [title, *map(_sweep, sweeps)] if sweeps else [title, Text("no valid trial")]


def equation(fit: dict[str, Any]) -> str:
    """A fit as a line of text: t in s, BW in Gbit/s."""
    a_s, b, n, capacity = (fit[name]["value"] for name in ("a_s", "b", "n", "capacity_gbps"))
    power = "" if n == 1 else f"^{n:.3g}"
    return f"t = {a_s:.3g} exp({b:.4g} / ({capacity:.4g} - BW){power})"


def span(interval: Sequence[float | None] | None, digits: int) -> str:
    """An interval in words; an end that nothing bounds is left open."""
    if interval is None:
        return ""
    low, high = ("" if end is None else f"{end:.{digits}f}" for end in interval)
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}" if high else "anything"


def _sweep(sweep: dict[str, Any]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold cyan")
    table.title = f"{sweep['name']}"
    for name in UNITS:
        table.add_column(name, justify="right", no_wrap=True)
    for level in sweep["levels"]:
        table.add_row(*_figures(level))
    facts = Table.grid(padding=(0, 2))
    for term, text in (("fit", _fit(sweep)), ("congestion", _congestion(sweep)), ("", _thesis(sweep))):
        if text:
            facts.add_row(Text(term, style="dim"), text)
    return Padding(Group(table, facts), (1, 0, 0, 0))


def _figures(level: dict[str, Any]) -> list[str]:
    ratio, fluid_s = level["times_no_load"], level["fluid_s"]
    return [
        f"{level['wire_gbps']:.2f}",
        f"{level['mean_s']:.3f}",
        f"[dim]{span(level['mean_ci95_s'], 3)}[/]",
        f"{level['p99_s']:.3f}",
        "" if ratio is None else f"{ratio:.2f}",
        "none" if fluid_s is None else f"{fluid_s:.3f}",
    ]


def _fit(sweep: dict[str, Any]) -> str:
    fit = sweep["fit"]
    if fit is None:
        return f"none: {sweep['why_no_fit']}"
    return f"{equation(fit)} s, R² {fit['r_squared']['log']:.3f} (log)"


def _congestion(sweep: dict[str, Any]) -> str:
    point = sweep["congestion"]
    if point is None:
        return f"none: {sweep['why_no_congestion']}"
    return f"at {point['load_gbps']:.1f} Gbit/s, {_data(point)}"


def _thesis(sweep: dict[str, Any]) -> str:
    observed = (sweep["paper"] or {}).get("observed")
    if observed is None:
        return ""
    load = observed["congestion_gbps"]
    return f"thesis: {'' if load is None else f'at {load:g} Gbit/s, '}{_data(observed)}"


def _data(point: dict[str, Any]) -> str:
    above = point["above_theory_percent"]
    return f"{point['demand_mb']:.0f} MB: {abs(above):.0f} % {'above' if above >= 0 else 'below'} theory"
