# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run as one sentence and one picture: the speed of each job in each cell."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from analysis.expectations.outcomes import ALL_JOBS, LOAD, JobSpeed
from analysis.expectations.results import Summary
from analysis.reading.cells import CellId
from analysis.render.interval_chart import ChartAxis, ChartRow, Mark, chart_html
from analysis.render.page import Html, fill_template
from analysis.render.style import INK, SOFT, job_colours
from roundabout.spec.base import Level

MAX_ROWS = 24
"""Largest number of rows with one figure each; with more, each level of one factor has a row with all its figures."""
MAX_CELLS = 3
"""Largest number of cells that the sentence lists; of more it names the fastest and the slowest."""
MAX_COLOURS = 7
"""Largest number of jobs with a color each."""
MAX_TOGGLES = 12
"""Largest number of jobs, and of levels, that can be hidden one by one."""
ALIKE = 1.02
"""Ratio of jobs' speeds up to which the sentence gives one figure for all of them."""
WAYS = {"computed": "Computed", "emulated": "Emulated", "real": "Measured"}
SPARSE = "No figure has an interval: that takes four repetitions."


class _Cell(NamedTuple):
    """A cell's name and the speeds of its jobs."""

    name: str
    speeds: Sequence[JobSpeed]

    @property
    def typical(self) -> float:
        """Return the median of the jobs' speeds."""
        return median(each.speed for each in self.speeds)

    @property
    def subject(self) -> str:
        """Return the jobs as a sentence's subject if one figure describes all of them; else an empty string."""
        low, high = (pick(each.speed for each in self.speeds) for pick in (min, max))
        count = len(self.speeds)
        if high > ALIKE * low:
            return ""
        return self.speeds[0].job if count == 1 else "both jobs" if count == 2 else f"all {count} jobs"


def outcome_html(results: Summary) -> Html:
    """Return the sentence and the picture of a run's outcome; nothing if no speed was measured."""
    speeds = results.speeds
    if not speeds:
        return Html("")
    axis = ChartAxis(f"times as fast as {_baseline(results)}", 1.0, "slower", "faster", logarithmic=True)
    sentence = describe_outcome(results)
    colours = _job_colours(results, speeds)
    rows = _rows(results, speeds, colours)
    key = tuple(colours.items()) if len(speeds) > MAX_ROWS and len(set(colours.values())) > 1 else ()
    chart = chart_html(rows, axis, sentence, key)
    sure = any(each.interval for each in speeds)
    note = "" if sure or results.testbed.fidelity.nature == "computed" else SPARSE
    return fill_template("outcome", sentence=sentence, chart=chart, names=_switchable(results), note=note)


def _switchable(results: Summary) -> list[str]:
    """Return the names of jobs and of levels of the compared factor that the page can hide: of those that are several.

    The names are those in tables and figures.
    """
    over = results.study.over or "variant"
    jobs = dict.fromkeys(cell.job for cell in results.cells)
    compared = [*(cell.levels for cell in results.cells), *(speed.levels for speed in results.speeds)]
    levels = dict.fromkeys(str(each[over]) for each in compared if over in each)
    return [name for names in (jobs, levels) if 1 < len(names) <= MAX_TOGGLES for name in names]


def describe_outcome(results: Summary) -> str:
    """Return a sentence on the speeds of jobs; empty if none was measured.

    Bounds are left out if there are other figures.
    """
    cells = _cells([each for each in results.speeds if not each.is_bound]) or _cells(results.speeds)
    if not cells:
        return ""
    way = WAYS.get(results.testbed.fidelity.nature, "Found")
    start = f"{way} ({results.testbed.kind}): compared with {_baseline(results)}, "
    if len(cells) <= MAX_CELLS:
        return f"{start}{_list_cells(cells)}."
    slowest, fastest = min(cells, key=lambda cell: cell.typical), max(cells, key=lambda cell: cell.typical)
    return (
        f"{start}{_jobs(fastest)} under {fastest.name}, which is the fastest of {len(cells)}, and {_jobs(slowest)} "
        f"under {slowest.name}, the slowest."
    )


def _list_cells(cells: Sequence[_Cell]) -> str:
    """Return a clause for each cell; the jobs are named once if they are alike in all cells."""
    first, *others = cells
    if first.subject and all(each.subject == first.subject for each in others):
        clauses = [f"{_times(each.typical)}{_interval(each.speeds)} under {each.name}" for each in others]
    else:
        clauses = [f"{_jobs(each)} under {each.name}" for each in others]
    return "; ".join([f"{_jobs(first)} under {first.name}", *clauses])


def _baseline(results: Summary) -> str:
    """Return the baseline as text, with its factor unless that is the variant."""
    baselines = {each.baseline for each in results.speeds}
    if len(baselines) > 1:
        return "the baseline"
    (name,) = baselines
    factors = [factor for cell in results.cells for factor, level in cell.levels.items() if str(level) == name]
    return name if not factors or "variant" in factors else _level(factors[0], name)


def _cells(speeds: Sequence[JobSpeed]) -> list[_Cell]:
    return [_Cell(_name(levels), list(same)) for levels, same in groupby(speeds, key=lambda each: each.levels)]


def _name(levels: Mapping[str, Level]) -> str:
    """Return the levels as text: the variant, and the others in parentheses."""
    variant = levels.get("variant")
    others = [_level(factor, level) for factor, level in levels.items() if factor != "variant"]
    if variant is None:
        return ", ".join(others) or CellId(levels).name
    return f"{variant} ({', '.join(others)})" if others else str(variant)


def _level(factor: str, level: Level) -> str:
    """Return a level as text, with the last part of its factor's path, and the unit of a load."""
    return f"load {level} Gbit/s" if factor == LOAD else f"{factor.rpartition('.')[2]} {level}"


def _jobs(cell: _Cell) -> str:
    """Return the speeds of a cell's jobs as a clause."""
    if cell.subject:
        verb = "is" if cell.subject == cell.speeds[0].job != ALL_JOBS else "are"
        return f"{cell.subject} {verb} {_times(cell.typical)} as fast{_interval(cell.speeds)}"
    if len(cell.speeds) <= MAX_CELLS:
        first, *others = cell.speeds
        clauses = [f"{each.job} {_times(each.speed)}{_interval([each])}" for each in others]
        return f"{first.job} is {_times(first.speed)} as fast{_interval([first])}, {', '.join(clauses)}"
    low, high = (pick(each.speed for each in cell.speeds) for pick in (min, max))
    return f"{len(cell.speeds)} jobs are {low:.2f} to {_times(high)} as fast"


def _times(speed: float) -> str:
    return f"{speed:.2f} times"


def _interval(speeds: Sequence[JobSpeed]) -> str:
    """Return the interval around all of the jobs' intervals, and a remark if it has 1 in it; empty if one has none."""
    known = [each.interval for each in speeds if each.interval]
    if len(known) < len(speeds):
        return ""
    low, high = min(low for low, _ in known), max(high for _, high in known)
    if f"{low:.2f}" == f"{high:.2f}":
        return ""
    return f" ({low:.2f} to {high:.2f}{', no difference shown' if low <= 1 <= high else ''})"


def _job_colours(results: Summary, speeds: Sequence[JobSpeed]) -> dict[str, str]:
    """Return each job's color, as in the other figures; one color for all of very many jobs, none for a lone one."""
    jobs = list(dict.fromkeys([*(cell.job for cell in results.cells), *(speed.job for speed in speeds)]))
    if len(jobs) == 1:
        return {jobs[0]: ""}
    return job_colours(jobs) if len(jobs) <= MAX_COLOURS else dict.fromkeys(jobs, SOFT)


def _rows(results: Summary, speeds: Sequence[JobSpeed], colours: Mapping[str, str]) -> list[ChartRow]:
    """Return a row for each figure, or, if they are many, for each level of one factor."""
    if len(speeds) <= MAX_ROWS:
        return [_row(each, colours[each.job]) for each in speeds]
    factor = _main_factor(results, speeds)
    by_level: dict[Level, list[JobSpeed]] = {}
    for each in speeds:
        by_level.setdefault(each.levels.get(factor, ""), []).append(each)
    return [_pooled_row(factor, level, same, colours) for level, same in by_level.items()]


def _row(speed: JobSpeed, colour: str) -> ChartRow:
    cell = CellId(speed.levels)
    named = str(speed.levels["variant"]) if "variant" in speed.levels else _name(speed.levels)
    note = _interval([speed]).partition(",")[0].strip(" ()")
    marks = (Mark(speed.speed, speed.interval, colour or INK),)
    return ChartRow(((named, ""), (speed.job, colour)), marks, f"{speed.speed:.2f}", note, cell.group)


def _pooled_row(factor: str, level: Level, speeds: Sequence[JobSpeed], colours: Mapping[str, str]) -> ChartRow:
    """Return the row of a factor's level, with all figures at this level."""
    figures = [each.speed for each in speeds]
    about = [f"{_name(each.levels)}, {each.job}: {each.speed:.2f}" for each in speeds]
    marks = [
        Mark(each.speed, None, colours[each.job] or SOFT, words) for each, words in zip(speeds, about, strict=True)
    ]
    typical = median(figures)
    note = f"median of {len(figures)}, {min(figures):.2f} to {max(figures):.2f}"
    named = str(level) if factor == "variant" else _level(factor, level)
    return ChartRow(((named, ""),), tuple(marks), f"{typical:.2f}", note, typical=typical)


def _main_factor(results: Summary, speeds: Sequence[JobSpeed]) -> str:
    """Return the factor whose levels are compared: the load, else the study's, the variant, or that of fewest levels.

    Seeds compare nothing.
    """
    counts = {name: len({each.levels[name] for each in speeds if name in each.levels}) for name in speeds[0].levels}
    varied = [name for name, count in counts.items() if count > 1 and not name.endswith("seed")]
    for name in (LOAD, results.study.over, "variant"):
        if name in varied:
            return name
    return min(varied, key=lambda name: counts[name], default="variant")
