# SPDX-License-Identifier: Apache-2.0
"""Numbers of attempts at trials, and the reasons for repeating them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis.reading.cells import CellId, experiment_of
from roundabout.store import Run
from roundabout.store.trial_states import RESENT, state_of_record


@dataclass(frozen=True)
class CellAttempts:
    """The attempts at one cell: their number, and how many were not valid, disturbed, or had retransmitted segments.

    `invalid` counts all attempts that are not valid, the disturbed ones among them.
    """

    cell: CellId
    made: int
    invalid: int
    resent: int
    disturbed: int = 0


def count_attempts(run: Run) -> list[CellAttempts]:
    """Return the attempts at each cell, in the experiment's order; cells without an attempt are left out."""
    made: dict[CellId, list[dict[str, Any]]] = {CellId(cell.levels): [] for cell in experiment_of(run).cells}
    for record in (*run.rejected_records(), *run.trials()):
        made[CellId.of(record)].append(record)
    return [_count_of_cell(cell, records) for cell, records in made.items() if records]


def _count_of_cell(cell: CellId, records: Iterable[dict[str, Any]]) -> CellAttempts:
    known = list(records)
    reasons = [record["reason"] for record in known]
    disturbed = sum(state_of_record(record) == "disturbed" for record in known)
    resent = sum(RESENT in reason for reason in reasons)
    return CellAttempts(cell, len(reasons), sum(map(bool, reasons)), resent, disturbed)
