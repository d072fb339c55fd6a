# SPDX-License-Identifier: Apache-2.0
"""lab.json, the description of a lab. It is written before the creation and again after the measurement."""

import os
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from roundabout.spec.topology import Topology
from roundabout.testbeds.lab.calibration.calibration import Calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import paths


class PortMeasurement(BaseModel):
    """The measured payload rate of a port, in the papers' Gbit/s."""

    model_config = ConfigDict(frozen=True)

    ifindex: int
    payload_rate_gbps: float


class LinkMeasurement(BaseModel):
    """The measurement of a link. `base_rtt_us` is the idle round trip between the nearest hosts on its two sides."""

    model_config = ConfigDict(frozen=True)

    link: str
    base_rtt_us: float
    ports: tuple[PortMeasurement, ...]


class LabRecord(BaseModel):
    """The content of lab.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    name: str
    state: Literal["building", "up"]
    created_utc: datetime
    scale: float
    dilation: float = 1.0
    transport_dilation: float | None = None  # None: the dilation
    calibration: Calibration
    topology: Topology
    clock_shift_ns: dict[str, int] = {}  # host -> lead of its own clock over the machine's
    marking: str | None = None
    measured: tuple[LinkMeasurement, ...] = ()

    @property
    def dilation_of_transports(self) -> float:
        """Return the factor of the times of transports and switches."""
        return self.transport_dilation or self.dilation


def write(lab: paths.LabPaths, record: LabRecord) -> None:
    """Replace the lab's record atomically."""
    draft = lab.record.with_suffix(".draft")
    draft.write_text(record.model_dump_json(indent=1, by_alias=True) + "\n")
    os.replace(draft, lab.record)


def read(lab: paths.LabPaths) -> LabRecord:
    """Read the lab's record.

    Raises:
        LabError: the lab does not exist, it is incomplete, or an incompatible version wrote the record.
    """
    try:
        record = LabRecord.model_validate_json(lab.record.read_text())
    except FileNotFoundError:
        raise LabError(
            f"there is no lab {lab.name!r}", "`roundabout lab status` lists labs, `roundabout lab up` makes one"
        ) from None
    except PermissionError:
        raise LabError(f"lab {lab.name!r} belongs to root", "run this with sudo") from None
    except ValidationError as error:
        raise LabError(
            f"{lab.record}: not a lab of this version: {error.errors()[0]['msg']}", f"`roundabout lab down {lab.name}`"
        ) from error
    if record.state != "up":
        raise LabError(f"lab {lab.name!r} was never finished", f"`roundabout lab down {lab.name}` clears it")
    return record
