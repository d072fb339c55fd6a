# SPDX-License-Identifier: Apache-2.0
"""The tables of a cluster: iteration times by scheduler and by model, and the histories of jobs."""

from collections.abc import Callable, Sequence
from functools import partial

from rich.console import RenderableType

from analysis.expectations.results import CellFigure
from analysis.render import screen as on_screen
from analysis.render.tables import REPETITIONS, TAIL, Cell, Column, Section, Table, group_by_title, tail_cell
from analysis.studies.cluster.study import JobHistories, ModelIterations, PooledIterations, Results, TimeStatistics
from roundabout.core.milliseconds import format_ms

WHOLE_MS = partial(format_ms, decimals=0)


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal."""
    by_model = (slowdown_table(results, ends=False), *mark_tables(results, ends=False)) if results.models else ()
    return [on_screen.table_renderable(each) for each in (pooled_table(results), history_table(results), *by_model)]


def pooled_table(results: Results) -> Table:
    """Return a table of the iteration times of all jobs together, ms, with speed-ups over the baseline."""
    columns = (
        *(Column(kind="names"), REPETITIONS, Column("iterations", ",.0f", only="page")),
        *(Column("mean,\nms", WHOLE_MS), Column("median", WHOLE_MS, only="page"), Column("p90", WHOLE_MS, only="page")),
        *(Column(TAIL, WHOLE_MS), Column("speed-up\nof mean", ".2f"), Column("of p99", ".2f")),
        *(Column("over", kind="words"), Column("mean over\nIdeal's", ".2f", only="page")),
        Column("over a dedi-\ncated cluster", ".2f", only="screen"),
    )
    sections = group_by_title(results.pooled, lambda each: each.group, _pooled)
    title = "Iteration times of all jobs, with 95 % intervals"
    return Table(columns, sections, title, empty="no valid trial", divisible=True)


def dedicated_table(results: Results) -> Table:
    """Return a table of all iteration times as multiples of the same workers' times in a dedicated cluster."""
    columns = (
        *(Column(kind="names"), *(Column(each, ".2f") for each in ("mean", "median", "p90", TAIL))),
        *(Column("speed-up\nof mean", ".2f"), Column("over", kind="words")),
    )
    sections = group_by_title(results.pooled, lambda each: each.group, _slowed)
    return Table(columns, sections, "Iteration times over those of a dedicated cluster")


def history_table(results: Results) -> Table:
    """Return a table of jobs' completion times, queueing delays, fairness and moves."""
    columns = (
        *(Column(kind="names"), Column("jobs", "d", only="page"), Column("never\nplaced", "d")),
        *(Column("not\ndone", "d"), Column("completion\nmean, s", ".0f"), Column(TAIL, ".0f")),
        *(Column("queueing,\ns", "z.0f"), Column("fairness", ".2f", only="page"), Column("fairness,\nworst", ".2f")),
        *(Column("moves", ".1f"), Column("score", ".2f", only="page")),
    )
    sections = group_by_title(results.lives, lambda each: each.group, _lives)
    empty = "In slices of a trace no job has its whole life."
    return Table(columns, sections, "Completion, queueing and fairness", empty=empty, divisible=True)


def slowdown_table(results: Results, *, ends: bool = True) -> Table:
    """Return a table, by model and scheduler, of the mean iteration time over that in a dedicated cluster.

    Cells show intervals only if `ends` is set.
    """
    title = "Mean iteration time over a dedicated cluster's"
    return _by_model(results, title, ".2f", lambda each: each.slowed, ends=ends)


def speedup_table(results: Results) -> Table:
    """Return a table, by model and scheduler, of the speed-up of mean iteration time over the baseline."""
    return _by_model(results, "Speed-up of the mean iteration time", ".2f", lambda each: each.speedup)


def mark_tables(results: Results, *, ends: bool = True) -> list[Table]:
    """Return a table, by model and scheduler, of ECN marks per iteration; an empty list without counts."""
    if all(each.marks is None for each in results.models):
        return []
    return [_by_model(results, "ECN marks per iteration", ".1f", lambda each: each.marks, ends=ends)]


def _by_model(
    results: Results,
    title: str,
    form: str,
    figure: Callable[[ModelIterations], CellFigure | None],
    *,
    ends: bool = True,
) -> Table:
    """Return a row for each model, a column for each scheduler with a figure.

    A screen has no room for ends of intervals.
    """
    known = [each for each in results.models if figure(each)]
    names = list(dict.fromkeys(each.name for each in known))
    sections = []
    for group in dict.fromkeys(each.group for each in known):
        own = {(each.model, each.name): figure(each) for each in known if each.group == group}
        models = sorted({model for model, _ in own})
        rows = ((Cell(model), *(_cell(own.get((model, name)), ends=ends) for name in names)) for model in models)
        sections.append(Section(tuple(rows), group))
    columns = (Column(kind="names"), *(Column(name, form) for name in names))
    return Table(columns, tuple(sections), title, divisible=True)


def _pooled(each: PooledIterations) -> Sequence[Cell]:
    return (
        *(Cell(each.name), Cell(each.repetitions), Cell(each.count)),
        *_spread(each.times_ms, each.count),
        *(_cell(each.speedup_mean), _cell(each.speedup_p99), Cell(each.baseline or "")),
        *(_cell(each.over_ideal), _cell(each.slowed.mean)),
    )


def _slowed(each: PooledIterations) -> Sequence[Cell]:
    figures = _spread(each.slowed, each.count)
    return Cell(each.name), *figures, _cell(each.speedup_slowed), Cell(each.baseline or "")


def _spread(each: TimeStatistics, count: int) -> Sequence[Cell]:
    return _cell(each.mean), _cell(each.median), _cell(each.p90), _tail(each.p99, each.max, count)


def _lives(each: JobHistories) -> Sequence[Cell]:
    done = each.jobs - each.waiting - each.unfinished
    longest = _tail(each.completion_p99_s, each.completion_max_s, done)
    return (
        *(Cell(each.name), Cell(each.jobs), Cell(each.waiting), Cell(each.unfinished)),
        *(_cell(each.completion_mean_s), longest, _cell(each.queueing_mean_s)),
        *(_cell(each.fairness_mean), _cell(each.fairness_worst), _cell(each.moves), _cell(each.score)),
    )


def _tail(p99: CellFigure | None, longest: float | None, count: int) -> Cell:
    if p99 or longest is None:
        return _cell(p99)
    return tail_cell(None, None, longest, count)


def _cell(figure: CellFigure | None, *, ends: bool = True) -> Cell:
    return Cell(figure.value, figure.ci95 if ends else None) if figure else Cell()
