# SPDX-License-Identifier: Apache-2.0
"""MLTCP's factor F over the course of an iteration, and the predictions of the published theory.

docs/explanation/mltcp-theory.md derives the theory, and says when it is exact.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from roundabout.core.errors import RoundaboutError
from roundabout.models.fluid.residual_capacity import Floats
from roundabout.spec import Transport
from roundabout.spec.transports import registry

MLTCP = "mltcp"
"""Name of the transport that declares F's parameters; a transport that includes them is a variant of MLTCP."""

RatioOrArray = TypeVar("RatioOrArray", float, Floats)

SHAPES: Mapping[str, Callable[[float, float], tuple[float, float, float, float, float]]] = {
    "linear": lambda slope, intercept: (intercept, slope, 0, 1, 0),
    "quadratic": lambda slope, intercept: (intercept, 0, slope, 1, 0),
    "reciprocal": lambda slope, intercept: (1, 0, 0, 1 / intercept, 1 / (slope + intercept) - 1 / intercept),
    "decreasing": lambda slope, intercept: (slope + intercept, -slope, 0, 1, 0),
}
"""The coefficients a to e of F(r) = (a + b r + c r^2) / (d + e r), by shape, from slope and intercept.

All shapes have the linear one's values at r = 0 and r = 1; `decreasing` exchanges them. With the published slope and
intercept the reciprocal shape is the published 1 / (4 - 3.5 r). The formulas of the quadratic and the decreasing shape
are guesses, because only their kinds are published. The decreasing shape serves as a control, because it must not work.
"""


class MltcpError(RoundaboutError):
    """An error for invalid parameters of MLTCP."""


def _check(**values: float) -> None:
    for name, each in values.items():
        if not 0 < each < math.inf:
            raise MltcpError(f"{name}: found {each:g}, expected a number above 0")


@dataclass(frozen=True)
class Factor:
    """F: the factor of rate or window increases as a function of the sent share of the iteration's bytes (thesis, eq.

    1.2).

    1.75 r + 0.25 is the published choice. 1 + r is adaptive unfairness (HotNets'22, section 4), where F multiplies R_AI
    alone.

    Raises:
        MltcpError: an unknown shape, a slope below 0, or an intercept that is not above 0.
    """

    shape: str = "linear"
    slope: float = 1.75
    intercept: float = 0.25

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise MltcpError(f"shape: found '{self.shape}', expected {' or '.join(SHAPES)}")
        _check(intercept=self.intercept)
        if not 0 <= self.slope < math.inf:
            raise MltcpError(f"slope: found {self.slope:g}, expected no number below 0")

    def __call__(self, ratio: RatioOrArray) -> RatioOrArray:
        """Return the factor at a ratio from 0 to 1, or at each ratio of an array."""
        constant, linear, square, below, below_linear = self.coefficients
        factor: RatioOrArray = (constant + ratio * (linear + ratio * square)) / (below + ratio * below_linear)
        return factor

    @cached_property
    def coefficients(self) -> tuple[float, float, float, float, float]:
        """Return the shape's coefficients in `SHAPES`."""
        return SHAPES[self.shape](self.slope, self.intercept)


def factor_of(transport: Transport) -> Factor | None:
    """Return F of a transport that declares MLTCP's parameters; None for other transports.

    F has the transport's `shape`, `slope` and `intercept`.

    Raises:
        MltcpError: as Factor does.
    """
    if MLTCP not in varied_transports(transport):
        return None
    requested: Mapping[str, Any] = transport.requested
    return Factor(**{name: requested[name] for name in Factor.__dataclass_fields__ if name in requested})


def varied_transports(transport: Transport) -> tuple[str, ...]:
    """Return the transports whose parameters a transport includes; none for one in a file beside an experiment."""
    declared = (
        registry.find_declaration(transport.name)
        if not transport.file and transport.name in registry.transport_names()
        else None
    )
    return declared.varied if declared else ()


def base_of(transport: Transport) -> str:
    """Return the name of the base transport of a variant of MLTCP; for other transports their own name."""
    return next((each for each in varied_transports(transport) if each != MLTCP), transport.name)
