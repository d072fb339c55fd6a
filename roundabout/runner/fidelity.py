# SPDX-License-Identifier: Apache-2.0
"""The statement of a testbed's fidelity: its figures are real, emulated or computed."""

from dataclasses import dataclass
from typing import Literal

Nature = Literal["real", "emulated", "computed"]


@dataclass(frozen=True)
class Fidelity:
    """A testbed's fidelity, which every page and screen states."""

    nature: Nature
    stamp: str  # one line for every screen and page
    about: str  # one paragraph
    cannot: tuple[str, ...] = ()  # effects that the testbed cannot show
