# SPDX-License-Identifier: Apache-2.0
"""A run's summary as tables for the screen, made for 80 columns (means are in summary.json and in the report)."""

from collections.abc import Callable
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.reading.cells import label
from analysis.reading.fidelity import fidelity
from analysis.studies.load_sweep.table import sweep_tables

LIMITS = {"alone": "alone_ms", "fair": "fair_ms"}
"""The fluid limit that a variant is held against; all others are held against the interleaved one."""
VERDICTS = {
    "inside": ("✓", "green", "inside"),
    "outside": ("✗", "red", "outside"),
    "undecided": ("?", "yellow", "undecided"),
    "not measured": ("-", "dim", "not measured"),
}


def table(summary: dict[str, Any]) -> RenderableType:
    """Iteration times and ECN marks per variant and job, the paper's figures with verdicts, and what was invalid.

    For a run over loads, each sweep with its fit and its congestion point instead.
    """
    parts = sweep_tables(summary["sweeps"]) if "sweeps" in summary else _cells(summary["cells"])
    figures, claims = split(summary["expectations"])
    if figures:
        parts.append(_expectations(figures))
    if claims:
        parts.append(_claims(claims))
    parts.extend(_invalid(trial) for trial in summary["invalid_trials"])
    parts.append(Text(fidelity(summary["testbed"]).stamp, style="dim"))
    return Group(*parts)


def _cells(cells: list[dict[str, Any]]) -> list[RenderableType]:
    marked = [cell for cell in cells if cell.get("marks_per_iteration")]
    return [_times(cells), *([_marks(marked)] if marked else [])]


def limit_of(cell: dict[str, Any]) -> tuple[str, float | None]:
    """The name and the figure (ms) of the fluid limit that a cell is held against; None where it never ends."""
    name = LIMITS.get(cell["variant"], "interleaved_ms")
    return name.removesuffix("_ms"), cell["fluid"][name]


def figure(value: float | None, interval: list[float] | None, digits: int) -> str:
    """A figure with its interval on a second line."""
    if value is None:
        return ""
    under = "" if interval is None else f"\n[dim]{interval[0]:.{digits}f}-{interval[1]:.{digits}f}[/]"
    return f"{value:.{digits}f}{under}"


def _times(cells: list[dict[str, Any]]) -> Table:
    heads = ("median", "p99", "last half,\nmedian", "speed-up\nover fair", "fluid\nlimit")
    result = _by_variant("Iteration time in ms, with 95 % intervals", heads, cells, _time_figures)
    if not cells:
        result.caption = "no valid trial"
    elif all(cell["median_ci95_ms"] is None for cell in cells):
        result.caption = "intervals not measured: fewer than 4 repetitions"
    return result


def _time_figures(cell: dict[str, Any]) -> list[str]:
    last_half = cell["last_half"]
    limit_name, limit_ms = limit_of(cell)
    return [
        *(figure(cell[f"{each}_ms"], cell[f"{each}_ci95_ms"], 1) for each in ("median", "p99")),
        figure(last_half["median_ms"], last_half["median_ci95_ms"], 1),
        figure(cell["speedup_over_fair"], cell["speedup_over_fair_ci95"], 2),
        "none" if limit_ms is None else f"{limit_ms:.1f}\n[dim]{limit_name}[/]",
    ]


def _marks(cells: list[dict[str, Any]]) -> Table:
    heads = ("median", "mean", "p99", "off by\nat most", "unattri-\nbuted")
    return _by_variant("ECN marks per iteration", heads, cells, _mark_figures)


def _mark_figures(cell: dict[str, Any]) -> list[str]:
    own = cell["marks_per_iteration"]
    share = own["unattributed_share"]
    return [
        *(figure(own[each], own[f"{each}_ci95"], 0) for each in ("median", "mean", "p99")),
        f"{own['bound']}",
        "" if share is None else f"{share:.1%}",
    ]


def _by_variant(
    title: str, heads: tuple[str, ...], cells: list[dict[str, Any]], figures: Callable[[dict[str, Any]], list[str]]
) -> Table:
    """A table of cells, one row each; a variant is named once."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_justify="left", title_style="bold")
    result.title = title
    result.add_column("", style="bold")
    result.add_column("job")
    for name in heads:
        result.add_column(name, justify="right", no_wrap=True)
    previous = None
    for cell in cells:
        name = label(cell["variant"], cell["levels"])
        if previous not in (None, name):
            result.add_section()
        result.add_row("" if name == previous else name, cell["job"], *figures(cell))
        previous = name
    return result


def split(expectations: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Those in figures, and those in words."""
    return (
        [each for each in expectations if each["kind"] != "claim"],
        [each for each in expectations if each["kind"] == "claim"],
    )


def _expectations(expectations: list[dict[str, Any]]) -> Table:
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    result.title = "Against the paper"
    result.add_column("expectation")
    for name in ("paper", "measured"):
        result.add_column(name, justify="right")
    result.add_column("verdict")
    for each in expectations:
        result.add_row(described(each), each["expected"], found(each), verdict(each))
    return result


def _claims(claims: list[dict[str, Any]]) -> RenderableType:
    """In words; those of which nothing was measured are counted below."""
    known = [each for each in claims if each["verdict"] != "not measured"]
    if not known:
        return Text(f"What papers claim ({len(claims)}) was not measured by this run.", style="dim")
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    result.title = "What papers claim"
    for name in ("claim", "here", "verdict"):
        result.add_column(name)
    for each in known:
        result.add_row(each["claim"], each["found"], verdict(each))
    if len(known) < len(claims):
        result.caption = f"not measured by this run: {len(claims) - len(known)} of {len(claims)}"
    return result


def found(expectation: dict[str, Any]) -> str:
    """What was measured, as a figure with its interval, or in words."""
    if expectation["measured"] is None or len(expectation["parts"]) > 1:
        return str(expectation["found"])
    return figure(expectation["measured"], expectation["ci95"], 2)


def verdict(expectation: dict[str, Any]) -> str:
    """The verdict, and on which basis agreement was to be expected."""
    mark, colour, words = VERDICTS[expectation["verdict"]]
    under = f"\n[dim]{expectation['basis']}[/]" if expectation["basis"] else ""
    return f"[{colour}]{mark} {words}[/]{under}"


def described(expectation: dict[str, Any]) -> str:
    """What an expectation is about, in words."""
    of = f": {expectation['of']}" if expectation["of"] else ""
    over = f" over {expectation['over']}" if expectation["over"] else ""
    job = f", {expectation['job']}" if expectation["job"] else ""
    at = "".join(f", {factor} {level}" for factor, level in (expectation["at"] or {}).items())
    return f"{expectation['what']}{of}{over}{job}{at}"


def _invalid(trial: dict[str, Any]) -> Text:
    return Text(f"invalid: {trial['key']}: {trial['reason']}", style="yellow")
