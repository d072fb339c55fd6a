# SPDX-License-Identifier: Apache-2.0
"""The congestion control of a job's hosts and its parameters."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.base import NotNegative, Positive, Strict

# What a transport means by default, whichever testbed runs it; its other parameters are the testbed's to choose.
DEFAULTS: dict[str, dict[str, float]] = {"dcqcn": {"T_us": 125.0}, "cubic": {}, "reno": {}}


class Transport(Strict):
    """A congestion control by name. The parameters are DCQCN's (SIGCOMM'15); None leaves one to the testbed."""

    name: Literal["dcqcn", "cubic", "reno"]
    T_us: Positive | None = Field(default=None, description="period of the rate-increase timer; 125 unless given")
    byte_counter_bytes: Annotated[int, Field(ge=0, le=10**12)] | None = None
    F: Annotated[int, Field(ge=1, le=100)] | None = None
    R_AI_mbps: Positive | None = None
    R_HAI_mbps: Positive | None = None
    g: Annotated[float, Field(gt=0, le=1)] | None = None
    alpha_timer_us: Positive | None = None
    cnp_gap_us: NotNegative | None = None
    R_min_mbps: Positive | None = None
    R_max_mbps: Positive | None = None

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("name"), str):
            given = {key: value for key, value in data.items() if value is not None}
            return {**DEFAULTS.get(data["name"], {}), **given}
        return data

    @model_validator(mode="after")
    def _only_own_parameters(self) -> Self:
        given = [key for key, value in self.parameters.items() if value is not None]
        if self.name != "dcqcn" and given:
            raise ValueError(f"no {given[0]} with {self.name}: it is a parameter of dcqcn")
        if self.R_min_mbps is not None and self.R_max_mbps is not None and self.R_min_mbps > self.R_max_mbps:
            raise ValueError("R_min_mbps no higher than R_max_mbps")
        return self

    @property
    def parameters(self) -> dict[str, float | None]:
        """Every parameter but the name."""
        return {key: getattr(self, key) for key in type(self).model_fields if key != "name"}
