# SPDX-License-Identifier: Apache-2.0
"""The result of a check: verdicts on measured figures, by part, and how it is reported."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, TypeVar

from analysis.render.page import Html
from analysis.render.tables import Table
from analysis.statistics.intervals import Measured
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.verdict_words import INCONCLUSIVE, NOT_MEASURED, Word, pass_or_fail
from roundabout.runner.fidelity import Fidelity

Name = TypeVar("Name", bound=str)


class FailedError(RoundaboutError):
    """Error for a check that fails. The exit code is 3."""

    exit_code = 3


class InconclusiveError(RoundaboutError):
    """Error for a check that neither passes nor fails. The exit code is 4."""

    exit_code = 4


@dataclass(frozen=True)
class Verdict:
    """A found value and its expectation. `of` names the subject. `verdict` is None without an expectation.

    `value` is the number in `found`, or None if `found` has none.
    """

    of: str
    name: str
    found: str
    expected: str
    verdict: Word | None
    value: float | None = field(default=None, compare=False)


def compare(  # noqa: PLR0913 - a figure, its limits, and their format
    of: str,
    name: str,
    measured: Measured | None,
    *,
    least: float | None = None,
    most: float | None = None,
    form: str = ".4g",
    may_be_missing: bool = False,
) -> Verdict:
    """Compare a figure with its limits. A figure with an interval fails if the whole interval is beyond a limit.

    A missing figure fails if it has a limit, unless it may be missing.
    """
    bounds = (("least", least), ("most", most))
    expected = ", ".join(f"at {word} {bound:{form}}" for word, bound in bounds if bound is not None)
    if measured is None:
        return Verdict(of, name, "no figure", expected, NOT_MEASURED if may_be_missing or not expected else "fail")
    value, interval = measured
    low, high = interval or (value, value)
    is_within = (least is None or high >= least) and (most is None or low <= most)
    ends = f" ({low:{form}} to {high:{form}})" if interval else ""
    return Verdict(of, name, f"{value:{form}}{ends}", expected, pass_or_fail(is_within) if expected else None, value)


def select_parts(requested: Iterable[str], parts: Sequence[Name]) -> tuple[Name, ...]:
    """Return the requested parts in order, or all parts without a request. Raises UsageError for an unknown part."""
    wanted = set(requested) or set(parts)
    if strange := wanted - set(parts):
        raise UsageError(f"--only: found {min(strange)!r}, expected some of {', '.join(parts)}")
    return tuple(each for each in parts if each in wanted)


@dataclass(kw_only=True)
class Check(ABC):
    """The result of a check.

    `parts` has the verdicts by part, in order. `runs` are the folders of runs that the check measured.
    """

    SCHEMA: ClassVar[int] = 1
    RESULT: ClassVar[str]
    """The name of the file of results, without its suffix."""
    PARTS: ClassVar[Sequence[str]]
    """The parts that `--only` selects."""
    TITLES: ClassVar[Mapping[str, str]]
    """The title of each part."""

    fidelity: Fidelity | None = None
    parts: dict[str, list[Verdict]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the page's title."""

    @property
    @abstractmethod
    def lead(self) -> str:
        """Return a line on the subject and the place of the measurements."""

    @property
    def failures(self) -> list[Verdict]:
        """Return all verdicts that fail."""
        return [each for verdicts in self.parts.values() for each in verdicts if each.verdict == "fail"]

    @property
    def undecided(self) -> list[Verdict]:
        """Return all verdicts that are inconclusive."""
        return [each for verdicts in self.parts.values() for each in verdicts if each.verdict == INCONCLUSIVE]

    @property
    def verdict(self) -> Word:
        """Return `fail` if a verdict fails, else `inconclusive` if one is, else `pass`."""
        return "fail" if self.failures else INCONCLUSIVE if self.undecided else "pass"

    @property
    def outcome(self) -> str:
        """Return one sentence on the outcome."""
        left_out = [part for part in self.PARTS if part not in self.parts]
        end = f" Not measured: {', '.join(left_out)}." if left_out else ""
        sentences: dict[Word, str] = {
            "fail": f"It does not pass. Findings: {len(self.failures)}.",
            INCONCLUSIVE: f"It neither passes nor fails. Inconclusive figures: {len(self.undecided)}.",
            "pass": "It passes.",
        }
        return sentences[self.verdict] + end

    def figure_table(self, part: str) -> Table | None:  # noqa: ARG002 - not every check has figures
        """Return a table of a part's figures, or None if the verdicts show all of them."""
        return None

    def charts(self) -> Iterable[Html]:
        """Return charts of the figures, and none by default."""
        return ()

    def meanings(self) -> Iterable[tuple[str, str]]:
        """Return the meanings of the figures' names."""
        return ()

    def notes(self) -> Iterable[str]:
        """Return further sentences, and none by default."""
        return ()

    def record(self) -> dict[str, Any]:
        """Return the result as JSON-compatible values."""
        return {"schema": self.SCHEMA, **asdict(self)}
