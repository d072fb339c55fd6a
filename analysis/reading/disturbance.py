# SPDX-License-Identifier: Apache-2.0
"""Disturbed trials: the mark of their figures, their wider intervals, and the cells that rest on them.

docs/explanation/trial-validity.md says what disturbs a trial, and holds the estimate of its effect against evidence.
"""

from collections.abc import Iterable

from analysis.statistics.intervals import Measured

MARK = "disturbed"
"""The word that marks figures of disturbed trials in tables, figures and verdicts."""
SHOWN = 2


def mark_name(name: str, effect: float | None) -> str:
    """Return a cell's name, with the mark if its figures come from disturbed trials, for which `effect` is not None."""
    return name if effect is None else f"{name} ({MARK})"


def describe_effect(effect: float) -> str:
    """Return the mark with the estimated effect of a disturbance, given as a share."""
    return f"{MARK}, ±{effect:.0%}"


def widen(measured: Measured, effect: float | None) -> Measured:
    """Return a positive figure that is proportional to iteration times with its interval widened by a disturbance.

    `effect` is the share by which a disturbance may have changed the figure, or None for a quiet figure. Both ends
    move, because a job that waits longer leaves more of the link to others. A missing interval stays missing.
    """
    value, interval = measured
    if effect is None or interval is None:
        return measured
    low, high = interval
    return value, (low / (1 + effect), high * (1 + effect))


def list_cells(names: Iterable[str]) -> str:
    """Return the names of cells as text, the first ones if there are many."""
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"{', '.join(known[:SHOWN])}{more}"
