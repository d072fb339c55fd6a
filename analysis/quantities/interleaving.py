# SPDX-License-Identifier: Apache-2.0
"""How jobs that start together slide apart, until one computes while the other communicates."""

import math
from collections.abc import Callable, Mapping, Sequence

from analysis.quantities import Asked, Case, Reading, mean_of, quantity
from analysis.reading.cells import CellTrials, communication
from analysis.reading.counted import Floats
from analysis.reading.data import iterations, rows_of
from analysis.reading.traces import first_apart, together


@quantity("end of the first iteration", unit="s", digits=3)
def first_ends(asked: Asked) -> list[Case]:
    """When a job's first iteration ends, from the first job's start; the mean of repetitions."""
    return _each_job(asked, lambda spans: float(spans[0, 1]))


@quantity("start of the second communication", unit="s", digits=3)
def second_sends(asked: Asked) -> list[Case]:
    """When a job begins to communicate for the second time; the mean of repetitions."""
    return _each_job(asked, lambda spans: float(spans[1, 0]))


@quantity("end of the first iteration, first job over second", unit="times", needs=("of",))
def lead(asked: Asked) -> list[Case]:
    """How much of the second job's time the first one needs for its first iteration; the mean of repetitions."""
    cases = []
    for cell, trials in _sharing(asked):
        one, other = list(trials[0])[:2]
        ratios = [float(spans[one][0, 1] / spans[other][0, 1]) for spans in trials]
        cases.append(Case(f"{one}/{other}", *mean_of(ratios), properties={"variant": cell.variant}))
    return cases


def _or_never(cases: Sequence[Case]) -> str:
    told = [f"{case.value:.1f}" if math.isfinite(case.value) else case.properties["never"] for case in cases]
    return ", ".join(
        told if len(cases) == 1 else (f"{case.name} {each}" for case, each in zip(cases, told, strict=True))
    )


@quantity("iteration by which communication is interleaved", digits=1, note=_or_never)
def interleaved(asked: Asked) -> list[Case]:
    """The first iteration in which jobs hardly send at once; the mean of repetitions, infinite where one has none."""
    cases = []
    for cell, trials in _sharing(asked):
        firsts = [_interleaved(spans) for spans in trials]
        without = firsts.count(math.inf)
        never = "never" if without == len(firsts) else f"never in {without} of {len(firsts)} repetitions"
        cases.append(Case(cell.name, *mean_of(firsts, at_least=1), {"variant": cell.variant, "never": never}))
    return cases


@quantity("sending at once", unit="%", digits=0)
def at_once(asked: Asked) -> list[Case]:
    """Of the time in which any job sends, that in which several do, over whole trials; the mean of repetitions."""
    return [
        Case(
            cell.name,
            *mean_of([100 * together(spans.values(), 0, math.inf) for spans in trials], at_least=0),
            properties={"variant": cell.variant},
        )
        for cell, trials in _sharing(asked)
    ]


Spans = Mapping[str, Floats]
"""By job: when it communicates, in s from the first job's start; shape (iterations, 2)."""


def _each_job(asked: Asked, of: Callable[[Floats], float]) -> list[Case]:
    return [
        asked.case(cell, job, *mean_of([of(spans[job]) for spans in trials]))
        for cell, trials in _sharing(asked)
        for job in asked.jobs(cell)
    ]


def _sharing(asked: Asked) -> list[tuple[CellTrials, list[Spans]]]:
    """The cells whose jobs share links, with their trials."""
    courses = asked.reading.once(_courses)
    cells = [cell for cell in asked.cells if not cell.spec.one_job_at_a_time and len(cell.times) > 1]
    return [(cell, [courses[trial] for trial in cell.trials]) for cell in cells]


def _courses(reading: Reading) -> dict[str, Spans]:
    """Of every trial in which jobs share links."""
    table = iterations(reading.run)
    courses: dict[str, Spans] = {}
    for cell in reading.cells:
        for trial in () if cell.spec.one_job_at_a_time else cell.trials:
            start_ns = min(rows_of(table, trial=trial)["start_ns"].to_pylist())
            courses[trial] = {
                job: (communication(table, trial, job) - start_ns) / 1e9 for job in cell.spec.jobs if job in cell.times
            }
    return courses


def _interleaved(spans: Spans) -> float:
    """Iterations are counted by the first job's, from 1; infinite where that never comes."""
    return first_apart(spans.values(), next(iter(spans.values()))[:, 1]) or math.inf
