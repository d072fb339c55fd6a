# SPDX-License-Identifier: Apache-2.0
"""How long jobs take to recover from events of links, and how many iterations they lose."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from analysis.quantities import Case, QuantityRequest, mean_of, quantity
from analysis.reading.recoveries import Recovery, recoveries


def _describe_never(cases: Sequence[Case]) -> str:
    return ", ".join(
        f"{case.name} {case.value:.0f}" if math.isfinite(case.value) else f"{case.name} never" for case in cases
    )


@quantity("recovery time", unit="ms", digits=0, by="event", note=_describe_never)
def recovery_time(request: QuantityRequest) -> list[Case]:
    """Return the time from a link's event until a job's iterations are within 5 % of the median before all events.

    It ends where the first of three such iterations running begins, and is 0 if no iteration was longer. It is infinite
    if a repetition does not recover. The figure is the mean of repetitions.
    """
    return _each_event(request, lambda recovery: recovery.recovery_ms)


@quantity("lost iterations", digits=2, by="event")
def lost_iterations(request: QuantityRequest) -> list[Case]:
    """Return the time that iterations took longer until a job recovered from a link's event, in iterations before it.

    Iterations count that begin before the next event. The figure is the mean of repetitions.
    """
    return _each_event(request, lambda recovery: recovery.lost_iterations)


def _each_event(request: QuantityRequest, figure: Callable[[Recovery], float]) -> list[Case]:
    made = recoveries(request.reading.run)
    cases = []
    for cell in request.cells:
        events = sorted(cell.spec.events, key=attrgetter("at_ms"))
        for job in request.jobs(cell):
            found = request.repetitions(made, cell, job)
            for number, event in enumerate(events if found else ()):
                case = request.case(cell, job, *mean_of([figure(each[number]) for each in found]))
                cases.append(
                    replace(case, name=f"{case.name}, {event}", properties={**case.properties, "event": str(event)})
                )
    return cases
