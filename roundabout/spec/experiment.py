# SPDX-License-Identifier: Apache-2.0
"""Model of an experiment: its trials, variants, repetitions and expectations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BeforeValidator, Field, ValidationInfo, field_validator

from roundabout.spec.base import Level, Name, Strict, Text, Tuple
from roundabout.spec.expectation import AnyExpectation, with_basis
from roundabout.spec.profile import Profile
from roundabout.spec.study_choice import Study, StudyChoice
from roundabout.spec.topology import Topology
from roundabout.spec.training.launch import SLURM_PROBE
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec

# Name of the only variant of an experiment without the factor `variant`.
ONLY_VARIANT = "base"
FAIR = "fair"


def _one_or_many(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if isinstance(item, list | tuple) else [item] for key, item in value.items()}
    return value


Excluded = Annotated[
    dict[Name, Annotated[Tuple[Level], Field(min_length=1)]],
    BeforeValidator(_one_or_many, json_schema_input_type=dict[Name, Level | list[Level]]),
]


def _by_name(value: Any) -> Any:
    """Set the names of profiles or topologies from their keys."""
    if not isinstance(value, Mapping):
        return value
    return {name: {"name": name, **each} if isinstance(each, Mapping) else each for name, each in value.items()}


MAX_REPETITIONS = 1000
"""Limit of repetitions. It is a guess that excludes slips of the pen."""

# Header fields that do not affect a trial's measurements.
ASIDE = (
    *("name", "about", "source", "study", "exclude", "repetitions", "seed", "only"),
    *("scale", "dilation", "transport_dilation"),
)


class ExperimentHeader(Strict):
    """The fields of the experiment as a whole, which overlays must not change."""

    schema_version: Literal[1] = Field(default=1, alias="schema", description="version of the format")
    name: Name = Field(description="name of the experiment; its runs lie in `runs/NAME`")
    about: Text = Field(description="description in a sentence")
    source: Text | None = Field(default=None, description="what it repeats: paper, figure or table")
    study: Study = Field(default=StudyChoice(), description="study that reports on the runs, or its fields")
    exclude: Tuple[Annotated[Excluded, Field(min_length=1)]] = Field(
        default=(), description="combinations of levels that are not run"
    )
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)] = Field(
        default=1, description="repetitions of each cell"
    )
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=1, description="seed of everything random: the order of trials, jitter, cross traffic"
    )
    only: Tuple[Name] = Field(
        default=(), description="variants to run, with their dependencies, and levels of other factors; default: all"
    )
    changes: dict[str, Any] = Field(
        default={}, alias="set", description="overrides by dotted path, on top of every level, as `--set` records them"
    )
    scale: Annotated[float, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="divisor of rates and bytes in the lab; `--scale` replaces it"
    )
    dilation: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        default=None, description="factor of all times in the lab; `--dilation` replaces it"
    )
    transport_dilation: Annotated[float, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="factor of the transport's times and thresholds in the lab, from `dilation` on, which is the "
        "default; with `--dilation` it does not apply",
    )
    profiles: Annotated[dict[Name, Profile], BeforeValidator(_by_name)] = Field(
        default={}, description="profiles of this experiment, by name; they hide the library's"
    )
    topologies: Annotated[dict[Name, Topology], BeforeValidator(_by_name)] = Field(
        default={}, description="topologies of this experiment, by name; they hide the library's"
    )

    @field_validator("transport_dilation")
    @classmethod
    def _above_dilation(cls, value: float | None, info: ValidationInfo) -> float | None:
        dilation = info.data.get("dilation")
        if value is not None and (dilation is None or value < dilation):
            raise ValueError("a `dilation` beside it, and no less than that")
        return value

    @property
    def altered_fields(self) -> dict[str, Any]:
        """Return the overrides in `set` that affect measurements. Empty if `set` also overrides the expectations."""
        if "expect" in self.changes:
            return {}
        return {path: value for path, value in self.changes.items() if path.partition(".")[0] not in ASIDE}


class Cell(Strict):
    """One combination of levels, and the specification of its trials."""

    levels: dict[Name, Level]
    spec: TrialSpec
    depends_on: Tuple[Name] = Field(default=(), validation_alias=AliasChoices("depends_on", "needs"))

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))

    @property
    def dependencies(self) -> dict[tuple[str | int, ...], str]:
        """Return the variants whose trials must run before, by the location of the field that names the variant.

        The fields are `depends_on`, `cassini.profiles`, and each job's `inputs`.
        """
        found: dict[tuple[str | int, ...], str] = {
            ("depends_on", index): name for index, name in enumerate(self.depends_on)
        }
        if self.spec.cassini and self.spec.cassini.profiles:
            found["cassini", "profiles"] = self.spec.cassini.profiles
        for name, job in self.spec.jobs.items():
            found |= {("jobs", name, "inputs", field): variant for field, variant in job.inputs.items()}
        return found


class Baseline(NamedTuple):
    """The baseline of speed-ups: a level of a factor."""

    factor: str
    level: Level


class Experiment(ExperimentHeader):
    """An experiment with every combination of levels merged, checked and resolved.

    `document` is the content of its file as written.
    """

    factors: dict[Name, Tuple[Level]]
    cells: Tuple[Cell]
    expect: Annotated[Tuple[AnyExpectation], BeforeValidator(with_basis)] = ()
    document: dict[str, Any]

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the variants in the order of the file."""
        return tuple(str(level) for level in self.factors.get("variant", (ONLY_VARIANT,)))

    @property
    def x_factor(self) -> str:
        """Return the factor along the x-axis of the study's figures."""
        return self.study.x_factor(self.factors)

    @property
    def baseline(self) -> Baseline:
        """Return the baseline of speed-ups. A baseline that an older run names but does not contain is ignored."""
        requested, levels = self.study.baseline, self.factors.get(self.x_factor, ())
        if requested is not None and requested in self.variants:
            return Baseline("variant", requested)
        if requested is not None and requested in levels:
            return Baseline(self.x_factor, requested)
        if len(self.variants) == 1 and levels:
            return Baseline(self.x_factor, levels[0])
        concurrent = (cell.variant for cell in self.cells if not cell.spec.one_job_at_a_time)
        return Baseline("variant", FAIR if FAIR in self.variants else next(concurrent, self.variants[0]))

    @property
    def transports(self) -> dict[str, Transport]:
        """Return all transports in use, by name."""
        return {name: transport for cell in self.cells for name, transport in cell.spec.transports.items()}

    @property
    def probes(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """Return pairs of a host and a command that fails on the host if a requirement of its trainers is missing."""
        jobs = [job for cell in self.cells for job in cell.spec.jobs.values()]
        needed = (
            (job, probe)
            for job in jobs
            for probe in (job.trainer.probe, job.trainer.image_probe, job.trainer.scheduled and SLURM_PROBE)
        )
        return frozenset((host, probe) for job, probe in needed if probe for host in job.workers)

    @property
    def trial_count(self) -> int:
        """Return the number of trials in one run of the experiment, over all repetitions."""
        return self.repetitions * sum(len(cell.spec.jobs) if cell.spec.one_job_at_a_time else 1 for cell in self.cells)
