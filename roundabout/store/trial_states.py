# SPDX-License-Identifier: Apache-2.0
"""The states of stored trials, and the choice of trials whose figures count.

A disturbed trial lacks CPU time, so that its figures are biased but not wrong. It counts only where its cell has
nothing better (docs/explanation/trial-validity.md).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

RESENT = "segments were sent again"
"""Reason that makes trials with slow iterations invalid, so that valid trials underestimate iteration times."""

State = Literal["valid", "disturbed", "invalid"]
STATES: tuple[State, ...] = ("valid", "disturbed", "invalid")

DISTURBED, DISTURBANCE = "disturbed", "disturbance"
"""Fields of trial.json that records of older runs lack: the state, and the estimated effect as a share."""

CPU_SHORTAGE, SETTINGS_DIFFER = "cpu_shortage", "settings_differ"
"""Fields of trial.json of runs on hosts, which others and older runs lack: the signs of a lack of CPU time, of invalid
trials too, and whether settings differed from the experiment's."""


def state_of_record(record: Mapping[str, Any]) -> State:
    """Return the state of an attempt by its record. Attempts of older runs are valid or invalid."""
    if record["valid"]:
        return "valid"
    return "disturbed" if record.get(DISTURBED) else "invalid"


def counted_trials(records: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the keys of the trials whose figures count.

    They are the valid trials, and the disturbed trials of each cell without a valid one. The trials of jobs that run
    one at a time count job by job.
    """
    states: dict[tuple[str, str | None], dict[str, State]] = {}
    for record in records:
        part = (record["levels"], record.get("job"))
        states.setdefault(part, {})[record["trial"]] = state_of_record(record)
    counted: set[str] = set()
    for of_part in states.values():
        best: State = "valid" if "valid" in of_part.values() else "disturbed"
        counted.update(key for key, state in of_part.items() if state == best)
    return frozenset(counted)


def largest_disturbance(records: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the largest estimated effect of disturbed trials, as a share of an iteration; None without such a trial.

    A disturbed trial without an estimate counts as 0, since its state says already that its figures are biased.
    """
    found = [float(each.get(DISTURBANCE) or 0.0) for each in records if state_of_record(each) == "disturbed"]
    return max(found, default=None)
