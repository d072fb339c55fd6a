# SPDX-License-Identifier: Apache-2.0
"""Model of an experiment's choice of study and baseline."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from roundabout.spec.base import Level, Name, Strict


class StudyChoice(Strict):
    """The study that reports on the runs, and its baseline. Studies are the folders of `analysis/studies`."""

    kind: Name | None = Field(default=None, description="name of the study; default: one that suits the varied factors")
    baseline: Level | None = Field(
        default=None,
        description="baseline of speed-ups: a variant, or a level of `over`; default: the variant `fair`, else the "
        "first variant with concurrent jobs, else the first level",
    )
    over: Name | None = Field(default=None, description="factor along the x-axis of the study's figures")

    def x_factor(self, factors: Iterable[str]) -> str:
        """Return the factor along the x-axis: `over`, else the first factor besides `variant`, else `variant`."""
        return self.over or next((name for name in factors if name != "variant"), "variant")


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Study = Annotated[StudyChoice, BeforeValidator(_named, json_schema_input_type=Name | StudyChoice)]
