# SPDX-License-Identifier: Apache-2.0
"""Advice on swaps of workers as tables, as a record for programs, and as a page."""

from dataclasses import asdict
from typing import Any

from analysis.advice.advice_tables import figure_cell
from analysis.advice.migration_advice import MIN_GAIN, STARTS, MigrationAdvice, SwapStep
from analysis.render import page
from analysis.render.tables import Cell, Column, Table, Tone, one_section
from roundabout.models.cluster.swap_rule import FREE, Swap
from roundabout.models.fluid import ITERATIONS

EXPLAINED = (
    f"Expected by the fluid model, in the mean of {ITERATIONS} iterations from {STARTS} random starts, each worker "
    "sending to the next of its job: gain is what jobs take now over what they take after this swap and those before. "
    "Break-even is the time after which as much work is done as without the moves."
)


def tables(advice: MigrationAdvice) -> list[Table]:
    """Return a table of swaps, and one of jobs."""
    return [_swaps(advice), _jobs(advice)]


def _swaps(advice: MigrationAdvice) -> Table:
    columns = (
        Column("swap", kind="names"),
        Column("gain", ".2f"),
        Column(f"break-even, s,\nat {advice.move_s:g} s a move", ".0f"),
        Column("advice", kind="words"),
    )
    chosen = len(advice.advised)
    rows = [
        (
            Cell(describe(step.swap)),
            figure_cell(step.gain),
            figure_cell(step.break_even_s),
            _advised(step, is_chosen=at < chosen),
        )
        for at, step in enumerate(advice.steps)
    ]
    return Table(columns, one_section(rows), "Swaps, one after the other", empty=f"Move nothing: {advice.why}.")


def _advised(step: SwapStep, *, is_chosen: bool) -> Cell:
    if is_chosen and step.break_even_s:
        return Cell(f"move, if these jobs run for {step.break_even_s.high:.0f} s or more", tone=Tone.GOOD)
    if step.gain.low <= 1:
        return Cell("leave: it may gain nothing", tone=Tone.UNKNOWN)
    if step.gain.value < MIN_GAIN:
        return Cell(f"leave: it gains less than {MIN_GAIN:.2f}", tone=Tone.UNKNOWN)
    if step.break_even_s is None:
        return Cell("leave: the work that is lost may not come back", tone=Tone.UNKNOWN)
    return Cell("leave: it gains no more than the swaps before", tone=Tone.UNKNOWN)


def _jobs(advice: MigrationAdvice) -> Table:
    last = advice.advised[-1].gain_by_job if advice.advised else {}
    columns = (
        Column("job", kind="names"),
        Column("now, over\nalone", ".2f"),
        Column("gain by the\nadvised swaps", ".2f"),
    )
    rows = [(Cell(job), figure_cell(cost), figure_cell(last.get(job))) for job, cost in advice.cost.items()]
    return Table(columns, one_section(rows), "Jobs that send", empty="No figures.")


def describe(swap: Swap) -> str:
    """Return a swap in words."""
    if swap.other_job == FREE:
        return f"{swap.job}: {swap.host} to {swap.other_host}, which is free"
    return f"{swap.job} on {swap.host} and {swap.other_job} on {swap.other_host}"


def record(advice: MigrationAdvice) -> dict[str, Any]:
    """Return the advice as JSON-compatible values. Intervals are of 95 %."""
    return {
        "move_s": advice.move_s,
        "iterations": ITERATIONS,
        "why": advice.why or None,
        "cost": {job: asdict(each) for job, each in advice.cost.items()},
        "advised_swaps": len(advice.advised),
        "swaps": [_step(step) for step in advice.steps],
    }


def _step(step: SwapStep) -> dict[str, Any]:
    swap = {**asdict(step.swap), "other_job": step.swap.other_job or None}
    return {
        **swap,
        "advised": step.is_advised,
        "gain": asdict(step.gain),
        "gain_by_job": {job: asdict(each) for job, each in step.gain_by_job.items()},
        "break_even_s": asdict(step.break_even_s) if step.break_even_s else None,
    }


def render_page(advice: MigrationAdvice, source: str) -> str:
    """Return the page's HTML, which loads nothing from elsewhere."""
    parts = [page.paragraph(EXPLAINED), *page.titled_tables(tables(advice)), page.paragraph(source)]
    return page.render_document("Migration", page.concatenate(parts))
