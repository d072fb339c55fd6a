# SPDX-License-Identifier: Apache-2.0
"""The lab's calibration: a versioned file with the lab's constants."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from roundabout.spec.assembly.validation_errors import parse_as
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
# Marking thresholds of a switch port at the papers' scale: 1000 and 2000 cells of 80 bytes. Above the second threshold
# every packet is marked. Source: the switch of Salamy's testbed (section 2.4).
THRESHOLDS_BYTES = (80_000, 160_000)
CERTAIN = 1 << 16  # representation of the probability 1 in ports (ECN_CERTAIN of ecn.h)


class Ecn(Strict):
    """WRED thresholds of a lab port. `kmin_bytes` and `kmax_bytes` are bytes of the lab's queue."""

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
"""Thresholds that never mark, because no port queues as many bytes."""


class QueueBytes(Strict):
    """The lengths of a port's FIFO: a deep one without losses, which stands for PFC, and a short one."""

    lossless: int = Field(gt=0, lt=2**31)
    lossy: int = Field(gt=0, lt=2**31)


class Derivation(Strict):
    """The time-dilated run from which constants were derived: its id, and the hash of its measurements.

    `targets` are the run's figures, by name. `misfit` is the root mean square of the deviations from the targets, each
    relative to its allowed deviation (analysis/calibration/calibration_targets.py).
    """

    run: str
    hash: str
    misfit: float = Field(ge=0)
    targets: dict[str, float]


class Calibration(Strict):
    """The constants of a lab, which experiments do not state."""

    schema_: Literal[1] = Field(alias="schema")
    version: int = Field(ge=1)
    # Divisor of rates. Without time dilation it also divides bytes.
    scale: float = Field(ge=1)
    # Factor of an experiment's T.
    timer_scale: float = Field(gt=0)
    # Largest segment burst (GSO) that a host's kernel passes to its link.
    gso_max_bytes: int = Field(ge=1500, le=65536)
    # Bytes that a port may send at once after it was idle (HTB's burst).
    burst_bytes: int = Field(ge=1514)
    queue_bytes: QueueBytes
    ecn: Ecn
    # Parameters of transports that experiments omit, in the lab's rates (Mbit/s) and times.
    transports: dict[str, dict[str, int | float]]
    # Origin of the values if they were derived from a time-dilated run.
    derived_from: Derivation | None = None

    def for_scale(self, scale: float | None, dilation: float | None) -> "Calibration":
        """Return the calibration for the given scale and transport's dilation. None keeps the calibration's own.

        Raises LabError if the dilation is too large for the scale.
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
        """Return the calibration of a time-dilated lab.

        All times of transports are multiplied by `dilation`, so that published parameters need no replacement.
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
    """Read a calibration file. Raises SpecError if the file is missing or invalid."""
    return parse_as(Calibration, read_document(path, shown_path(path)))


def store_calibration(calibration: Calibration, path: Path = DEFAULT) -> None:
    """Replace a calibration file. Its former content is only in version control."""
    values = dump(calibration.model_dump(by_alias=True, exclude_none=True))
    write_text(path, HEADER + values)
