# SPDX-License-Identifier: Apache-2.0
"""The choice of the attempt that a trial keeps: a valid one, else the least disturbed one, else the last one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from roundabout.runner.testbed import Outcome
from roundabout.store import Attempt, Run
from roundabout.store.trial_states import DISTURBANCE, DISTURBED, state_of_record

MAX_REPEATS = 2  # how often an invalid or disturbed trial is repeated

Record = dict[str, Any]


@dataclass(frozen=True)
class InheritedDisturbance:
    """The disturbance of the earlier trials from which a trial takes inputs; without reasons where there is none.

    `effect` is the largest estimate of these trials, as a share of an iteration.
    """

    reasons: tuple[str, ...]
    effect: float

    @classmethod
    def of_inputs(cls, run: Run, inputs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> "InheritedDisturbance":
        """Return the disturbance of the trials in `inputs`, the field "given" of trial.json (job -> field -> input).

        Raises StoreError if a trial's record cannot be read.
        """
        used = {key for fields in inputs.values() for each in fields.values() for key in each["trials"]}
        found = [each for each in run.trials() if each["trial"] in used] if used else []
        disturbed = [each for each in found if state_of_record(each) == "disturbed"]
        reasons = tuple(f"inputs come from trial {each['trial']}, which was disturbed" for each in disturbed)
        return cls(reasons, max(map(_effect, disturbed), default=0.0))


def verdict_fields(outcome: Outcome, inherited: InheritedDisturbance) -> Record:
    """Return the fields of trial.json that state whether an attempt is valid, disturbed or invalid, and why."""
    wrong = bool(outcome.invalid_reasons) and not outcome.disturbed
    reasons = [*outcome.invalid_reasons, *inherited.reasons]
    effect = outcome.record.get(DISTURBANCE)
    return {
        "valid": not reasons,
        "reason": "; ".join(reasons),
        DISTURBED: bool(reasons) and not wrong,
        DISTURBANCE: inherited.effect + effect if effect is not None else inherited.effect or None,
    }


def least_disturbed(records: Iterable[Record]) -> Record | None:
    """Return the record with the smallest estimated effect among disturbed attempts; the earliest of equal ones.

    None if no attempt is disturbed: the others are valid, or their figures are wrong.
    """
    found = [each for each in records if state_of_record(each) == "disturbed"]
    return min(found, key=_effect, default=None)


def commit_best(attempt: Attempt, record: Record) -> Record:
    """Commit a trial's last attempt, or an earlier one that was disturbed less. Return the committed record.

    `record` becomes the attempt's trial.json. A valid attempt is always committed. Raises StoreError.
    """
    if not record["valid"]:
        earlier = sorted(attempt.run.rejected_records(attempt.key), key=_number)
        best = least_disturbed([*earlier, record])
        if best is not None and best is not record:
            attempt.replace_by(record, best)
            return best
    attempt.commit(record)
    return record


def _effect(record: Mapping[str, Any]) -> float:
    return float(record.get(DISTURBANCE) or 0.0)


def _number(record: Mapping[str, Any]) -> int:
    return int(record["attempt"])
