# SPDX-License-Identifier: Apache-2.0
"""A model's computing as measured on a GPU (docs/reference/gpu-computing.md), and the profile that follows from it.

What is sent is computed: each bucket of gradients is all-reduced once it is ready and the bucket before it is sent.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.reading.measured_profile import phase_names
from analysis.records.call import RecordError
from analysis.records.collective_groups import worker_bytes
from analysis.records.files import open_record
from roundabout.spec import Phase, Profile
from roundabout.spec.base import Text, Tuple

FORMAT = "roundabout gpu computing"
SHORTEST_GAP = 0.015
"""Share of an iteration below which silence between two buckets is no phase: the shortest phase that `roundabout
profile` finds in byte counters (docs/how-to/profiling.md)."""

HOST_BOUND = 0.1
"""Share of an iteration below which a GPU is idle so soon after the last iteration was queued that it must have waited
for the host before (a guess)."""

Milliseconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**15)]


class _RecordPart(BaseModel):
    """A part of a record. Its further fields are for people."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Spread(_RecordPart):
    """Median, least and most of a time over iterations, ms."""

    median: Milliseconds
    min: Milliseconds
    max: Milliseconds


class Bucket(_RecordPart):
    """A bucket of gradients: its bytes, and when it is ready after the backward pass began, ms."""

    bytes: Count
    ready_ms: Spread


class GpuMeasurement(_RecordPart):
    """One line of a record: a model's computing with one batch, input and precision on one GPU."""

    model: Text
    batch: Count
    planned_batch: Count
    precision: Literal["fp32", "tf32", "bf16-autocast", "bf16"]
    parameters: Count
    optimizer: Text
    iterations: Count
    forward_ms: Spread
    backward_ms: Spread
    optimizer_ms: Spread
    buckets: Annotated[Tuple[Bucket], Field(min_length=1)]
    torch: Text
    program_sha256: Text
    shape: Mapping[str, Any]
    input: Mapping[str, int]
    share: Mapping[str, int] = {}
    layers: Count | None = None
    gpu: Mapping[str, Any] | None = None
    revision: Text | None = None
    drain_ms: Milliseconds | None = None

    @property
    def choices(self) -> dict[str, str]:
        """Return the fields by which a measurement is chosen, as text."""
        reported = {"batch": self.batch, "precision": self.precision, **self.input, **self.share}
        return {name: str(value) for name, value in reported.items()}

    @property
    def gpu_name(self) -> str:
        """Return the name of the GPU."""
        return str((self.gpu or {}).get("name", "a CPU"))

    @property
    def is_host_bound(self) -> bool:
        """Return True if the host queued slower than the GPU computed; False if the record does not show it."""
        return self.gpu is not None and self.drain_ms is not None and self.drain_ms < HOST_BOUND * self.compute_ms

    @property
    def compute_ms(self) -> float:
        """Return the time of an iteration without communication, ms."""
        return self.forward_ms.median + self.backward_ms.median + self.optimizer_ms.median


@dataclass(frozen=True)
class GpuRecord:
    """The measurements of a record, and a sentence on each one that failed."""

    measurements: tuple[GpuMeasurement, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True)
class _Stretch:
    """A time in which the network is busy, ms after the forward pass began, and the payload that a worker sends."""

    begin_ms: float
    end_ms: float
    bytes: int


def read_gpu_record(path: Path) -> GpuRecord:
    """Return the measurements in a record of `trainers/torch/computing/measurement.py`.

    Raises RecordError for a file that cannot be read, that has another format, or no line at all.
    """
    with open_record(path) as file:
        lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
    if not lines:
        raise RecordError(f"{path}: found no line, expected a measurement in each")
    reported = [(number, _decode(path, number, line)) for number, line in lines]
    failures = [
        f"{each.get('model')} {each.get('precision')}: {each['error']}" for _, each in reported if "error" in each
    ]
    measured = [_measurement(path, number, each) for number, each in reported if "error" not in each]
    return GpuRecord(tuple(measured), tuple(failures))


def _decode(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        reported = json.loads(line)
    except ValueError as error:
        raise RecordError(f"{path}, line {number}: found no JSON ({error}), expected a measurement") from None
    if not isinstance(reported, dict) or reported.get("format") != FORMAT:
        raise RecordError(f"{path}, line {number}: found another format, expected '{FORMAT}'")
    if reported.get("schema") != 1:
        raise RecordError(f"{path}, line {number}: found schema {reported.get('schema')!r}, expected 1")
    return reported


def _measurement(path: Path, number: int, reported: Mapping[str, Any]) -> GpuMeasurement:
    try:
        return GpuMeasurement.model_validate(reported)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RecordError(f"{path}, line {number}: found {where} = {first['input']!r}: {first['msg']}") from None


def choose_measurement(record: GpuRecord, words: Sequence[str]) -> GpuMeasurement:
    """Return the measurement that `words` name: the model, then fields such as `batch=512` or `precision=tf32`.

    Of measurements with the same fields, the last one counts.

    Raises RecordError if none or several have these fields.
    """
    model, *conditions = words
    wanted = dict(map(read_condition, conditions))
    of_model = [each for each in record.measurements if each.model == model]
    if not of_model:
        known = ", ".join(dict.fromkeys(each.model for each in record.measurements))
        raise RecordError(f"found no measurement of '{model}', expected one of {known or 'none: all failed'}")
    found = [each for each in of_model if wanted.items() <= each.choices.items()]
    found = list({describe_fields(each): each for each in found}.values())
    if len(found) == 1:
        return found[0]
    names = "; ".join(describe_fields(each) for each in found or of_model)
    what = f"{len(found)} measurements of {' '.join(words)}"
    raise RecordError(f"found {what}, expected one of: {names}", "name fields, such as precision=tf32")


def read_condition(text: str) -> tuple[str, str]:
    """Return the field and the value of a word such as `precision=tf32`. Raises RecordError for another word."""
    name, separator, value = text.partition("=")
    if not separator:
        raise RecordError(f"found '{text}' after the model, expected FIELD=VALUE, such as precision=tf32")
    return name, value


def describe_fields(measured: GpuMeasurement) -> str:
    """Return the fields by which a measurement is chosen, as `name=value` words."""
    return " ".join(f"{name}={value}" for name, value in measured.choices.items())


def profile_of_measurement(measured: GpuMeasurement, name: str, workers: int, payload_gbps: float) -> Profile:
    """Return the profile of a data-parallel job of `workers` workers on such GPUs.

    Each worker sends `payload_gbps` Gbit/s of payload on an idle network. The profile's iteration begins where the
    last bucket of the one before is sent: with the optimizer's step. Raises RecordError for one layer of a model, whose
    communication depends on how the model is divided.
    """
    if measured.layers:
        raise RecordError(
            f"found one layer of {measured.model}, expected a whole model: a profile of its job needs more than that"
        )
    busy = _merge(_stretches(measured, workers, payload_gbps), measured)
    phases = list(_phases(measured, busy, payload_gbps))
    names = phase_names([phase["bytes"] is not None for phase in phases])
    return Profile(
        name=name,
        model=measured.model,
        batch=measured.batch,
        source=_source(measured, workers, payload_gbps),
        phases=tuple(Phase(name=each, **phase) for each, phase in zip(names, phases, strict=True)),
    )


def _stretches(measured: GpuMeasurement, workers: int, payload_gbps: float) -> Iterator[_Stretch]:
    """Yield a stretch for each bucket: all-reduced by a ring, in order, each after the one before."""
    free_ms = 0.0
    for bucket in measured.buckets:
        size = worker_bytes("all-reduce", workers, bucket.bytes)
        begin_ms = max(free_ms, measured.forward_ms.median + bucket.ready_ms.median)
        free_ms = begin_ms + size * 8 / payload_gbps / 1e6
        yield _Stretch(begin_ms, free_ms, size)


def _merge(stretches: Iterator[_Stretch], measured: GpuMeasurement) -> list[_Stretch]:
    """Return the stretches with those joined between which the network is silent for less than `SHORTEST_GAP`."""
    found = [next(stretches)]
    rest = list(stretches)
    end_ms = rest[-1].end_ms if rest else found[0].end_ms
    least_ms = SHORTEST_GAP * max(measured.compute_ms, end_ms + measured.optimizer_ms.median)
    for each in rest:
        last = found[-1]
        if each.begin_ms - last.end_ms < least_ms:
            found[-1] = _Stretch(last.begin_ms, each.end_ms, last.bytes + each.bytes)
        else:
            found.append(each)
    return found


def _phases(measured: GpuMeasurement, busy: Sequence[_Stretch], payload_gbps: float) -> Iterator[dict[str, Any]]:
    backward_end_ms = measured.forward_ms.median + measured.backward_ms.median
    left_ms = max(backward_end_ms - busy[-1].end_ms, 0.0)
    before_ms = measured.optimizer_ms.median + busy[0].begin_ms + left_ms
    what = "the optimizer's step, the forward pass, and the backward pass up to the first bucket of gradients"
    left = f", and {left_ms:.3f} ms of the backward pass after the last bucket" if left_ms else ""
    yield {"compute_ms": round(before_ms, 3), "bytes": None, "source": f"measured: {what}{left}"}
    end_ms = busy[0].begin_ms
    for each in busy:
        if each is not busy[0]:
            silent = "measured: the backward pass, while all buckets that are ready are sent"
            yield {"compute_ms": round(each.begin_ms - end_ms, 3), "bytes": None, "source": silent}
        end_ms = each.end_ms
        sent = f"gradients as measured, sent at {payload_gbps:g} Gbit/s as soon as their bucket is ready"
        yield {"bytes": each.bytes, "alone_ms": _ceil(each.end_ms - each.begin_ms), "source": f"computed: {sent}"}


def _ceil(time_ms: float) -> float:
    """Return a time rounded up to a nanosecond, so that the demand is at most the link's rate."""
    return math.ceil(time_ms * 1e6) / 1e6


def _source(measured: GpuMeasurement, workers: int, payload_gbps: float) -> str:
    gpu = measured.gpu or {}
    inputs = ", ".join(f"{name} {value}" for name, value in measured.input.items())
    revision = f"revision {measured.revision}, " if measured.revision else ""
    times = {"forward": measured.forward_ms, "backward": measured.backward_ms, "optimizer": measured.optimizer_ms}
    return (
        f"measured on one {measured.gpu_name} (driver {gpu.get('driver', 'unknown')}, power limit "
        f"{gpu.get('power_limit_w', 'unknown')} W, PyTorch {measured.torch}): {measured.precision}, batch "
        f"{measured.batch}{f', {inputs}' if inputs else ''}, {measured.optimizer}; "
        f"{', '.join(f'{name} {_shown(each)}' for name, each in times.items())}: medians of {measured.iterations} "
        f"iterations, least and most in brackets; communication computed for {workers} workers in a ring at "
        f"{payload_gbps:g} Gbit/s of payload; {revision}program {measured.program_sha256[:12]}"
    )


def _shown(spread: Spread) -> str:
    return f"{spread.median:.2f} ms ({spread.min:.2f} to {spread.max:.2f})"


def caveats(measured: GpuMeasurement) -> Iterator[str]:
    """Yield a sentence on each thing that the measurement lacks, the general ones first."""
    yield (
        "Computing was measured alone: kernels of NCCL beside it, and the copies into and out of buckets, take some of "
        "the GPU's time."
    )
    yield (
        "A profile's phases follow each other: silence between buckets keeps its length where buckets before it were "
        "sent late, though computing would have gone on meanwhile."
    )
    if measured.is_host_bound:
        yield "The host queued slower than the GPU computed: with a faster processor these times are shorter."
    if measured.batch < measured.planned_batch:
        yield f"The batch of {measured.planned_batch} did not fit the GPU's memory, one of {measured.batch} did."
    if measured.shape.get("kind") == "dlrm":
        yield "Exchanges of embeddings are left out: only the gradients above the tables are sent."
    if measured.precision == "bf16":
        yield "Parameters and gradients have 16 bits: half of the bytes are sent, and no copy of 32 bits is kept."
