# SPDX-License-Identifier: Apache-2.0
"""The nature of a testbed's figures: real, emulated or computed."""

from dataclasses import dataclass
from typing import Literal

Nature = Literal["real", "emulated", "computed"]


@dataclass(frozen=True)
class Fidelity:
    """How real a testbed's figures are, as every page states it."""

    nature: Nature
    stamp: str  # one line, on every screen and page
    about: str  # a paragraph
    cannot: tuple[str, ...] = ()  # what nobody can see there
