# SPDX-License-Identifier: Apache-2.0
"""Checks at the end of a measuring command. A run without a valid trial is an error; a cell without one, a warning."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.store import Run
from roundabout.terminal.lines import print_warning

FIGURE = re.compile(r"\d+(?:\.\d+)?")
SHOWN = 3


class UnmeasuredError(RoundaboutError):
    """Error for a run without any valid trial."""


def check_measured(run: Run) -> None:
    """Raise UnmeasuredError if no trial of the run is valid. Print a warning about cells without a valid trial."""
    trials = run.trials()
    if not any(each["valid"] for each in trials):
        raise UnmeasuredError(_unmeasured(trials), f"remove the cause and run it again; {_each_reason(run)}")
    if missing := cells_without_valid_trial(trials):
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        cells = len({each["levels"] for each in trials})
        named = f"{len(missing)} of {cells} cells: {', '.join(missing[:SHOWN])}{more}"
        print_warning(f"no valid trial in {named}; {_each_reason(run)}")


def cells_without_valid_trial(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of cells without a valid trial.

    A cell whose jobs run one at a time is included if any of its jobs has no valid trial.
    """
    from analysis.reading.cells import CellId  # noqa: PLC0415 - takes a second to import

    valid: dict[tuple[str, str | None], bool] = {}
    for each in trials:
        part = (each["levels"], each.get("job"))
        valid[part] = valid.get(part, False) or each["valid"]
    return list(dict.fromkeys(CellId.of({"levels": levels}).name for (levels, _), found in valid.items() if not found))


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
