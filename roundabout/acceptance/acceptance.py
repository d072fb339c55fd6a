# SPDX-License-Identifier: Apache-2.0
"""The result of an acceptance test."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from roundabout.acceptance.limits import Limits
from roundabout.acceptance.verdicts import Verdict
from roundabout.core.errors import UsageError
from roundabout.runner.fidelity import Fidelity

Part = Literal["paths", "links", "job"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass
class Acceptance:
    """The result of an acceptance test.

    `parts` has the verdicts by part, in order, without parts after a failed one. Only a rack has the part `settings`.
    `dscp` is the expected DSCP of jobs' packets. `runs` are the folders of the measurements.
    """

    topology: str
    where: dict[str, str]
    fidelity: Fidelity | None = None
    dscp: int = 0
    parts: dict[str, list[Verdict]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[Verdict]:
        """Return all verdicts that fail."""
        return [each for verdicts in self.parts.values() for each in verdicts if each.verdict == "fail"]

    def record(self, limits: Limits) -> dict[str, Any]:
        """Return the result as JSON-compatible values."""
        reported = {name: [each._asdict() for each in verdicts] for name, verdicts in self.parts.items()}
        return {
            "schema": 1,
            "accepted": not self.failures,
            **asdict(self),
            "parts": reported,
            "limits": limits.model_dump(),
        }


def select_parts(requested: Iterable[str]) -> tuple[Part, ...]:
    """Return the requested parts in order, or all parts without a request. Raises UsageError for an unknown part."""
    wanted = set(requested) or set(PARTS)
    if strange := wanted - set(PARTS):
        raise UsageError(f"--only: found {min(strange)!r}, expected some of {', '.join(PARTS)}")
    return tuple(each for each in PARTS if each in wanted)
