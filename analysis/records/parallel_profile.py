# SPDX-License-Identifier: Apache-2.0
"""The profile of a job that is divided among servers, from one layer's computing as measured on a GPU.

docs/reference/gpu-computing.md has the formulas. Collectives within a server are computing for the network.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from pydantic import ValidationError

from analysis.records.call import RecordError
from analysis.records.gpu_record import GpuMeasurement, GpuRecord, choose_measurement, read_condition
from roundabout.spec import Phase, Profile
from roundabout.spec.patterns import Pattern
from roundabout.spec.profile import ring_allreduce_bytes
from roundabout.spec.reader.yaml_source import parse_option
from roundabout.spec.training.computing_plan import LayerModel, read_layers
from roundabout.spec.training.parallel_job import GPUS_PER_SERVER, ParallelJob, read_parallel_jobs

ACTIVATION_BYTES = 2
NORM_MS = 0.1
"""A guess of the time of an all-reduce of one number, which latency bounds. No result depends on it."""
OF_COMPUTING = "Effect: with twice the computing a NIC sends for half of the share of an iteration"
OF_BYTES = "Effect: bytes are proportional to each factor; with less overlap sending prolongs the iteration"
CAVEATS = (
    "Layers were measured one by one; embeddings, the head and the loss are left out.",
    "Stages send evenly over their computing: the order of micro-batches and their waits are not played.",
    "Guesses and their effect are in docs/results/pod-collisions.md.",
)
Groups = tuple[tuple[int, ...], ...]


class _Send(NamedTuple):
    """The bytes that each worker sends in a phase, its receivers, and the formula in words."""

    name: str
    bytes: float
    pattern: Pattern
    groups: Groups
    formula: str


@dataclass(frozen=True)
class _Division:
    """A job, the model of its layer, and the computing of the share that one GPU has of it."""

    job: ParallelJob
    model: LayerModel
    measured: GpuMeasurement

    @property
    def stage_layers(self) -> float:
        """Return the mean number of layers of a stage."""
        return (self.job.layers or self.model.layers) / self.job.pipeline

    @property
    def vector_bytes(self) -> float:
        """Return the bytes of a micro-batch's activations."""
        return float(self.job.tokens * self.model.shape["hidden"] * ACTIVATION_BYTES)

    @property
    def within_server_ms(self) -> float:
        """Return the time of a layer's collectives within the server, in one direction of a micro-batch.

        Tensors: two all-reduces of activations (Megatron-LM, arXiv 1909.08053, section 3). Experts: tokens to their
        experts and back; across servers this is a part of what NICs send.
        """
        job, others = self.job, (GPUS_PER_SERVER - 1) / GPUS_PER_SERVER
        if "tensors" in job.share:
            sent = 2 * 2 * others * self.vector_bytes
        else:
            sent = self._expert_bytes(self.model.shape["chosen"] * others) if job.expert_servers == 1 else 0.0
        return float(sent * 8 / job.nvlink_gbps / 1e6)

    @property
    def between_servers_bytes(self) -> float:
        """Return the bytes that a NIC sends to experts on other servers and back, for a layer and one direction."""
        others = (self.job.expert_servers - 1) / self.job.expert_servers
        return self._expert_bytes((self.job.copies or self.model.shape.get("chosen", 0)) * others)

    def _expert_bytes(self, copies: float) -> float:
        each = self.job.dispatch_bytes + self.job.combine_bytes
        return float(self.job.tokens * self.model.shape["hidden"] * copies * each)

    def micro_batch_ms(self, layer_ms: float) -> float:
        """Return the time of a micro-batch in one direction through a stage whose layers took `layer_ms` measured."""
        scale = self.job.computing * self.job.tokens / self.measured.input["tokens"]
        return self.stage_layers * (layer_ms * scale + self.within_server_ms)

    @property
    def expert_parameters(self) -> float:
        """Return the parameters of a stage's experts that one GPU has.

        The layer has D + X parameters and the measured share has D + X/E of them, where E divides the experts.
        """
        divided = self.job.share.get("experts")
        if not divided:
            return 0.0
        return self.stage_layers * (self.model.parameters - self.measured.parameters) / (divided - 1)

    @property
    def dense_parameters(self) -> float:
        """Return the other parameters of a stage for each NIC of a server, which has an eighth of the server's."""
        divided = self.job.share.get("experts", 0)
        whole = self.stage_layers * self.model.parameters - divided * self.expert_parameters
        return whole / GPUS_PER_SERVER

    def groups(self, axes: str) -> Groups:
        """Return the ranks that differ only in `axes`: s for stage, d for replica, x for server of the experts."""
        job = self.job
        sizes = {"s": job.pipeline, "d": job.data, "x": job.expert_servers, "g": GPUS_PER_SERVER}
        fixed = [axis for axis in sizes if axis not in axes]
        return tuple(
            tuple(
                self._rank(dict(zip(fixed, outer, strict=True)) | dict(zip(axes, inner, strict=True)))
                for inner in product(*(range(sizes[axis]) for axis in axes))
            )
            for outer in product(*(range(sizes[axis]) for axis in fixed))
        )

    def _rank(self, place: dict[str, int]) -> int:
        server = (place["s"] * self.job.data + place["d"]) * self.job.expert_servers + place["x"]
        return server * GPUS_PER_SERVER + place["g"]


def job_of_words(words: Sequence[str]) -> ParallelJob:
    """Return the job that the first word names, with the fields that further words change, such as `data=8`.

    Raises RecordError for a field that a job lacks, and for a value that does not suit it.
    """
    name, *changes = words
    fields = {field: parse_option(field, value)[0] for field, value in map(read_condition, changes)}
    try:
        return read_parallel_jobs()[name].with_fields(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or name
        raise RecordError(f"{where}: {first['msg']}", f"fields: {', '.join(ParallelJob.model_fields)}") from None


def measurement_of(job: ParallelJob, record: GpuRecord) -> GpuMeasurement:
    """Return the measurement of the job's layer. Raises RecordError if the record lacks it."""
    [(axis, parts)] = job.share.items()
    return choose_measurement(record, [job.layer, f"precision={job.precision}", f"{axis}={parts}"])


def profile_of_parallel_job(job: ParallelJob, measured: GpuMeasurement, name: str, payload_gbps: float) -> Profile:
    """Return the profile of a job whose workers send `payload_gbps` Gbit/s of payload on an idle network.

    Ranks count GPUs within servers, servers within replicas, and these within stages.
    """
    whole = _Division(job, read_layers()[job.layer], measured)
    return Profile(
        name=name,
        model=job.layer,
        workers=job.servers * GPUS_PER_SERVER,
        source=_source(whole, payload_gbps),
        phases=tuple(_phases(whole, payload_gbps)),
    )


def _phases(whole: _Division, payload_gbps: float) -> Iterator[Phase]:
    job, measured = whole.job, whole.measured
    forward_ms = whole.micro_batch_ms(measured.forward_ms.median)
    backward_ms = whole.micro_batch_ms(measured.backward_ms.median)
    rest = job.micro_batches - 1
    bubble_ms = (job.pipeline - 1) * (forward_ms + backward_ms) / job.chunks
    yield from _window(
        "first-forward", forward_ms, _state("parameters", job.parameter_bytes, whole), whole, payload_gbps
    )
    yield from _window("forward", rest * forward_ms, _exchanges("", whole), whole, payload_gbps)
    yield from _window("bubble", bubble_ms, [], whole, payload_gbps)
    yield from _window("backward", rest * backward_ms, _exchanges("-gradients", whole), whole, payload_gbps)
    yield from _window(
        "last-backward", backward_ms, _state("gradients", job.gradient_bytes, whole), whole, payload_gbps
    )
    workers = job.servers * GPUS_PER_SERVER
    norm = "the norm of all gradients; a guess of its latency. Effect: 0.01 % of an iteration at most"
    yield Phase(name="norm", bytes=ring_allreduce_bytes(1, workers), alone_ms=NORM_MS, guess=norm)
    step_ms = job.computing * whole.stage_layers * measured.optimizer_ms.median / job.data
    yield from _window("step", step_ms, [], whole, payload_gbps)


def _state(what: str, size: float, whole: _Division) -> list[_Send]:
    """Return the all-gather of parameters or the reduce-scatter of gradients, of `size` bytes each."""
    job = whole.job
    dense = (f"dense-{what}", whole.dense_parameters, job.data * job.expert_servers, "dx")
    experts = (f"expert-{what}", whole.expert_parameters, job.data, "d")
    if job.expert_servers == 1:
        dense, experts = (what, dense[1] + experts[1], job.data, "d"), (what, 0.0, 1, "d")
    return [
        _Send(
            name,
            (ring - 1) / ring * parameters * size,
            "ring",
            whole.groups(axes),
            f"{parameters / 1e9:.3f} billion parameters of a NIC x {size:g} bytes x {ring - 1}/{ring}",
        )
        for name, parameters, ring, axes in (dense, experts)
        if ring > 1 and parameters
    ]


def _exchanges(suffix: str, whole: _Division) -> list[_Send]:
    """Return what micro-batches send in one direction: activations between stages, tokens between experts."""
    job = whole.job
    sends = []
    if job.pipeline > 1:
        stages = whole.groups("s")
        activations = job.micro_batches * job.chunks * whole.vector_bytes / GPUS_PER_SERVER
        formula = (
            f"{job.micro_batches} micro-batches x {job.chunks} chunks x {job.tokens} tokens x {ACTIVATION_BYTES} bytes "
            f"x {whole.model.shape['hidden']} / {GPUS_PER_SERVER} NICs"
        )
        ordered = tuple(group[::-1] for group in stages) if suffix else stages
        sends.append(_Send(f"activation{suffix or 's'}", activations, "pipeline", ordered, formula))
    if job.expert_servers > 1:
        copies = job.copies or whole.model.shape["chosen"]
        tokens = job.micro_batches * whole.stage_layers * whole.between_servers_bytes
        formula = (
            f"{job.micro_batches} micro-batches x {whole.stage_layers:g} layers x {job.tokens} tokens x {copies:g} "
            f"servers x {job.expert_servers - 1}/{job.expert_servers} x {whole.model.shape['hidden']} x "
            f"({job.dispatch_bytes:g} + {job.combine_bytes:g}) bytes"
        )
        sends.append(_Send(f"token{suffix or 's'}", tokens, "all-to-all", whole.groups("x"), formula))
    return sends


def _window(
    name: str, compute_ms: float, sends: Sequence[_Send], whole: _Division, payload_gbps: float
) -> Iterator[Phase]:
    """Yield the phases of a stretch of computing, during the last part of which workers send.

    Where sending takes longer than that part, it goes on afterwards.
    """
    overlapped_ms = whole.job.overlap * compute_ms if sends else 0.0
    if alone_ms := round(compute_ms - overlapped_ms, 3):
        layers = f"{whole.stage_layers:g} layers as measured, and their collectives within a server"
        yield Phase(name=name, compute_ms=alone_ms, guess=f"computed: {layers}. {OF_COMPUTING}")
    total = sum(each.bytes for each in sends)
    lasts_ms = max(overlapped_ms, total * 8 / payload_gbps / 1e6)
    during = f", during {overlapped_ms:.3f} ms of computing" if overlapped_ms else ""
    for each in sends:
        yield Phase(
            name=each.name,
            bytes=math.floor(each.bytes),
            alone_ms=math.ceil(lasts_ms * each.bytes / total * 1e6) / 1e6,
            pattern=each.pattern,
            groups=each.groups,
            guess=f"computed: {each.formula}{during}. {OF_BYTES}",
        )


def _source(whole: _Division, payload_gbps: float) -> str:
    measured, job = whole.measured, whole.job
    gpu = measured.gpu or {}
    reported = job.model_dump(exclude={"source", "guess", "layer", "share", "precision"}, exclude_none=True)
    fields = {"precision": job.precision, **{name: f"{value:g}" for name, value in reported.items()}}
    [(axis, parts)] = job.share.items()
    return (
        f"a layer measured on one {measured.gpu_name} (driver {gpu.get('driver', 'unknown')}, PyTorch "
        f"{measured.torch}, program {measured.program_sha256[:12]}), {axis} divided by {parts}: forward "
        f"{measured.forward_ms.median:.2f} ms, backward {measured.backward_ms.median:.2f} ms, optimizer "
        f"{measured.optimizer_ms.median:.2f} ms; the job computed at {payload_gbps:g} Gbit/s of payload with "
        f"{', '.join(f'{name}={value}' for name, value in fields.items())}. Source: {job.source}. Guess: {job.guess}"
    )
