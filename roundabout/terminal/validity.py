# SPDX-License-Identifier: Apache-2.0
"""Checks at the end of a measuring command.

A run without a valid or disturbed trial is an error. A cell without one is a warning, and so is a disturbed cell.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.store import Run
from roundabout.store.trial_states import STATES, State, counted_trials, largest_disturbance, state_of_record
from roundabout.terminal.lines import print_warning

FIGURE = re.compile(r"\d+(?:\.\d+)?")
SHOWN = 3


class UnmeasuredError(RoundaboutError):
    """Error for a run without any valid or disturbed trial."""


def check_measured(run: Run) -> None:
    """Raise UnmeasuredError if no trial of the run is valid or disturbed.

    Print a warning about cells without such a trial, and about cells whose figures come from disturbed trials.
    """
    trials = run.trials()
    if not counted_trials(trials):
        raise UnmeasuredError(_unmeasured(trials), f"remove the cause and run it again; {_each_reason(run)}")
    if missing := cells_with_best_state(trials, "invalid"):
        print_warning(f"no valid trial in {_name_cells(missing, trials)}; {_each_reason(run)}")
    if disturbed := cells_with_best_state(trials, "disturbed"):
        effect = largest_disturbance(trials) or 0.0
        print_warning(
            f"disturbed by a lack of CPU time, {_name_cells(disturbed, trials)}: iterations may be up to {effect:.0%} "
            f"off, and verdicts on them are at most inconclusive; {_each_reason(run)}"
        )


def cells_with_best_state(trials: Sequence[Mapping[str, Any]], state: State) -> list[str]:
    """Return the names of cells whose best trial has this state.

    A cell whose jobs run one at a time is included if any of its jobs is.
    """
    from analysis.reading.cells import CellId  # noqa: PLC0415 - takes a second to import

    best: dict[tuple[str, str | None], State] = {}
    for each in trials:
        part = (each["levels"], each.get("job"))
        best[part] = min(best.get(part, "invalid"), state_of_record(each), key=STATES.index)
    return list(
        dict.fromkeys(CellId.of({"levels": levels}).name for (levels, _), found in best.items() if found == state)
    )


def _name_cells(names: Sequence[str], trials: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of cells in `names`, of all cells, and the first names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    cells = len({each["levels"] for each in trials})
    return f"{len(names)} of {cells} cells: {', '.join(names[:SHOWN])}{more}"


def most_frequent_reason(trials: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the most frequent reason of invalid trials, and the number of trials with this reason.

    Reasons that differ only in numbers count as the same.
    """
    kinds: Counter[str] = Counter()
    example: dict[str, str] = {}
    for each in trials:
        reasons = [reason for reason in each["reason"].split("; ") if reason and not each["valid"]]
        kinds.update({FIGURE.sub("#", reason) for reason in reasons})
        for reason in reasons:
            example.setdefault(FIGURE.sub("#", reason), reason)
    if not kinds:
        return "no reason is recorded", len(trials)
    ((kind, count),) = kinds.most_common(1)
    return example[kind], count


def _unmeasured(trials: Sequence[Mapping[str, Any]]) -> str:
    if not trials:
        return "no trial was committed, so nothing was measured"
    reason, count = most_frequent_reason(trials)
    return f"none of {len(trials)} trials is valid; the most frequent reason ({count} of {len(trials)}): {reason}"


def _each_reason(run: Run) -> str:
    return f"each trial's reason: roundabout status {run.path}"
