# SPDX-License-Identifier: Apache-2.0
"""The lab's calibration: one versioned file, read strictly."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from roundabout.spec.assembly.explanation import parse_as
from roundabout.spec.base import Strict
from roundabout.spec.reader.yaml_source import dump, read_document, shown_path
from roundabout.spec.transports import registry
from roundabout.store.files import write_text
from roundabout.testbeds.lab.errors import LabError

DEFAULT = Path(__file__).with_name("calibration.yaml")
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Written by `roundabout calibrate --write`: what makes a scaled link behave like the papers'. calibration.py says what
# each value is, docs/results/calibration.md how they were found. `version` rises with any change: it is part of a
# trial's key.
"""
# Of a switch port at full size: 1000 and 2000 cells of 80 bytes, and every packet marked above that, as the switch of
# Salamy's testbed was set (section 2.4).
THRESHOLDS_BYTES = (80_000, 160_000)
CERTAIN = 1 << 16  # a probability of 1, as ports hold it (ECN_CERTAIN of ecn.h)


class Ecn(Strict):
    """WRED thresholds of a port, in bytes of the lab's queue."""

    kmin_bytes: int = Field(ge=0, lt=2**32)
    kmax_bytes: int = Field(ge=0, lt=2**32)
    pmax: float = Field(ge=0, le=1)

    @field_validator("pmax")
    @classmethod
    def _round(cls, value: float) -> float:
        """Round to a probability that ports hold: they count in parts of 65536 (ecn.h)."""
        if value and value < 0.5 / CERTAIN:
            raise ValueError(f"0, or at least {1 / CERTAIN:.3g}")
        return round(value * CERTAIN) / CERTAIN

    @model_validator(mode="after")
    def _ordered(self) -> "Ecn":
        if self.kmin_bytes > self.kmax_bytes:
            raise ValueError(f"kmin_bytes at most kmax_bytes, which is {self.kmax_bytes}")
        return self


NEVER_MARK = Ecn(kmin_bytes=2**32 - 1, kmax_bytes=2**32 - 1, pmax=1)
"""Marks nothing: more than any port holds."""


class QueueBytes(Strict):
    """The length of a port's FIFO: so deep that nothing is lost, as in a fabric with PFC, or short."""

    lossless: int = Field(gt=0, lt=2**31)
    lossy: int = Field(gt=0, lt=2**31)


class Derivation(Strict):
    """The dilated run that constants were derived from: its id, and the hash of its measurements.

    `targets` are its figures, by name, which the constants had to meet; `misfit` is how far off they are, in root mean
    square of what is allowed of each (analysis/calibration/calibration_targets.py).
    """

    run: str
    hash: str
    misfit: float = Field(ge=0)
    targets: dict[str, float]


class Calibration(Strict):
    """The constants of a lab that experiments do not state."""

    schema_: Literal[1] = Field(alias="schema")
    version: int = Field(ge=1)
    # Rates are divided by it, and bytes as far as time is not stretched.
    scale: float = Field(ge=1)
    # An experiment's T is multiplied by it.
    timer_scale: float = Field(gt=0)
    # The largest burst that a host's kernel hands to its link at once.
    gso_max_bytes: int = Field(ge=1500, le=65536)
    # What a port may send at once after an idle spell (HTB's burst).
    burst_bytes: int = Field(ge=1514)
    queue_bytes: QueueBytes
    ecn: Ecn
    # Parameters of transports that experiments leave to the lab, in its own rates (Mbit/s) and times.
    transports: dict[str, dict[str, int | float]]
    # Where the values were derived from a lab with time stretched, and not found by looking at the papers' figures.
    derived_from: Derivation | None = None

    def for_scale(self, scale: float | None, dilation: float | None) -> "Calibration":
        """Return the calibration at the given scale and dilation.

        Raises:
            LabError: time cannot be stretched so much at that scale.
        """
        scale = scale or self.scale
        if dilation is None:
            return self.model_copy(update={"scale": scale})
        if not 1 <= dilation <= scale:
            raise LabError(
                f"a lab at 1:{scale:g} cannot stretch time {dilation:g} times",
                f"expected a dilation of 1 to {scale:g}: there every packet of the real link is sent",
            )
        return self.for_dilation(scale, dilation)

    def for_dilation(self, scale: float, dilation: float) -> "Calibration":
        """Return the calibration of a dilated lab.

        All times are stretched alike, and published values stay as they are.
        """
        kmin, kmax = (round(size * dilation / scale) for size in THRESHOLDS_BYTES)
        lossy = round(self.queue_bytes.lossy * self.scale * dilation / scale)
        return self.model_copy(
            update={
                "scale": scale,
                "timer_scale": dilation,
                "queue_bytes": self.queue_bytes.model_copy(update={"lossy": lossy}),
                "ecn": Ecn(kmin_bytes=kmin, kmax_bytes=kmax, pmax=1),
                "transports": {},
                "derived_from": None,
            }
        )

    @model_validator(mode="after")
    def _declared(self) -> "Calibration":
        for transport, values in self.transports.items():
            declared = registry.find_declaration(transport)
            parameters = {each.name: each for each in declared.parameters} if declared else {}
            for name, value in values.items():
                if name not in parameters:
                    raise ValueError(f"no {name} for {transport}, which has no such parameter")
                least, most = parameters[name].least, parameters[name].most
                if not least <= value <= most:
                    raise ValueError(f"{name} of {transport} from {least:g} to {most:g}, not {value}")
        return self


def load_calibration(path: Path = DEFAULT) -> Calibration:
    """Read a calibration file.

    Raises:
        SpecError: the file is missing or unreadable, or a field is missing, unknown or out of range.
    """
    return parse_as(Calibration, read_document(path, shown_path(path)))


def store_calibration(calibration: Calibration, path: Path = DEFAULT) -> None:
    """Write a calibration file. Version control keeps the former one."""
    values = dump(calibration.model_dump(by_alias=True, exclude_none=True))
    write_text(path, HEADER + values)
