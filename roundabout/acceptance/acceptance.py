# SPDX-License-Identifier: Apache-2.0
"""What came of an acceptance."""

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
    """Verdicts by part, in order, of which `settings` are a rack's; what comes after a part that fails is missing.

    `dscp` is what packets of jobs were to have; `runs` are the folders of what was measured.
    """

    topology: str
    where: dict[str, str]
    fidelity: Fidelity | None = None
    dscp: int = 0
    parts: dict[str, list[Verdict]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Verdict]:
        """What does not pass."""
        return [each for verdicts in self.parts.values() for each in verdicts if each.good is False]

    def record(self, limits: Limits) -> dict[str, Any]:
        """For programs."""
        told = {name: [each._asdict() for each in verdicts] for name, verdicts in self.parts.items()}
        return {"schema": 1, "accepted": not self.failed, **asdict(self), "parts": told, "limits": limits.model_dump()}


def parts(asked: Iterable[str]) -> tuple[Part, ...]:
    """The parts asked for, in order; all where none is. Raises UsageError for an unknown one."""
    wanted = set(asked) or set(PARTS)
    if strange := wanted - set(PARTS):
        raise UsageError(f"--only: found {min(strange)!r}, expected some of {', '.join(PARTS)}")
    return tuple(each for each in PARTS if each in wanted)
