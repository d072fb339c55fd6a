# SPDX-License-Identifier: Apache-2.0
"""The models of the interleaving thesis' Table 4.2: a job's profile from its model, workers and batch.

models.yaml distinguishes known values from guesses, with the guesses' ranges and effects. The parameter `guesses` is
None for the values in the file, or a seed that draws every guess from its range. Results over several seeds then have
intervals that include the guesses' uncertainty.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from roundabout.core.errors import UsageError
from roundabout.spec.assembly.merge import merge
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Name, Positive, Strict, Text, Tuple
from roundabout.spec.errors import quote_value, suggest
from roundabout.spec.patterns import Pattern
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.reader.yaml_source import Block, Document, read_document, shown_path

MODELS_FILE = Path(__file__).with_name("models.yaml")
MAX_CACHED_DRAWS = 64  # largest number of cached sets of guesses

Among = Literal["copies", "parts", "parts-back", "tensors", "ends"]
Guesses = int | None


class Figure(Strict):
    """A number with its origin; a guess also has a range."""

    value: Annotated[float, Field(gt=0)]
    least: Annotated[float, Field(gt=0)] | None = None
    most: Annotated[float, Field(gt=0)] | None = None
    source: Text | None = None
    guess: Text | None = None

    @model_validator(mode="after")
    def _guesses_have_ranges(self) -> Self:
        if (self.source is None) == (self.guess is None):
            raise ValueError("exactly one of source and guess")
        if self.guess is not None and not (self.least or 0) <= self.value <= (self.most or 0):
            raise ValueError("a guess between its least and most")
        return self


class Part(Strict):
    """A phase of a plan: its share of the iteration's computing, or its bytes, communicating group and rate."""

    name: Name
    compute: Positive | None = None
    sends: Name | None = None
    among: Among = "copies"
    pattern: Pattern = "ring"
    gbps: Name | None = None


class Plan(Strict):
    """The division of a model among workers, and the phases of its iteration."""

    parts: bool = False
    tensors: Annotated[int, Field(ge=1)] = 1
    phases: Tuple[Part]


class Shape(NamedTuple):
    """The division of workers: the numbers of copies of a model, of parts of its layers, and of tensors of a part."""

    copies: int
    parts: int
    tensors: int

    def groups(self, among: Among) -> tuple[tuple[int, ...], ...]:
        """Return the groups of ranks that communicate with each other; groups of one rank are left out."""
        copies, parts, tensors = (range(count) for count in self)
        found: dict[Among, list[tuple[int, ...]]] = {
            "copies": [tuple(self._rank(c, p, t) for c in copies) for p in parts for t in tensors],
            "parts": [tuple(self._rank(c, p, t) for p in parts) for c in copies for t in tensors],
            "tensors": [tuple(self._rank(c, p, t) for t in tensors) for c in copies for p in parts],
        }
        found["parts-back"] = [group[::-1] for group in found["parts"]]
        found["ends"] = [(group[0], group[-1]) for group in found["parts"] if len(group) > 1]
        return tuple(group for group in found[among] if len(group) > 1)

    def _rank(self, copy: int, part: int, tensor: int) -> int:
        return (copy * self.parts + part) * self.tensors + tensor

    def share(self, among: Among) -> float:
        """Return the factor from a model's bytes to those of one worker's exchange.

        It is 1 / (parts x tensors) among copies, 1 / tensors between the ends of a pipeline, 1 among tensors, and the
        number of parts between parts.
        """
        by_tensors = 1 / self.tensors
        return {"copies": by_tensors / self.parts, "ends": by_tensors, "tensors": 1.0}.get(among, float(self.parts))


class Model(Strict):
    """A model of Table 4.2, or an instance of it with other sizes."""

    plan: Name
    type: Literal["vision", "language", "recommendation"]
    batch: Annotated[tuple[int, int], Field(strict=False)]
    memory_mb: Annotated[tuple[int, int], Field(strict=False)]
    compute_ms: Figure
    bytes: dict[Name, Figure]
    bytes_per_example: dict[Name, Figure] = Field(default={})


class Models(Strict):
    """The models, sets and plans of models.yaml."""

    schema_version: Literal[1] = Field(alias="schema")
    sets: dict[Name, Tuple[Name]]
    gbps: dict[Name, Figure]
    noise_examples: dict[Name, Figure]
    plans: dict[Name, Plan]
    models: dict[Name, Model]


class ModelError(UsageError):
    """An error for an unknown model, or for a number of workers that the model cannot have."""


@cache
def _document() -> Document:
    return read_document(MODELS_FILE, shown_path(MODELS_FILE))


@lru_cache(maxsize=MAX_CACHED_DRAWS)
def read_models(guesses: Guesses = None) -> Models:
    """Return all models, with guesses as in models.yaml, or drawn with the seed `guesses`."""
    root = _document().root
    root = root if guesses is None else _draw_guesses(root, guesses, "")
    listed = Block(root["models"])
    for name, block in root["models"].items():
        if "like" in block:
            own = {key: value for key, value in block.items() if key != "like"}
            listed[name] = merge(listed[block["like"]], own)
    return parse_as(Models, Document(_document().file, Block({**root, "models": listed})))


def _draw_guesses(value: Any, seed: int, path: str) -> Any:
    """Return the value with each guess drawn from its range, independent of other guesses.

    Half is as likely as double.
    """
    if isinstance(value, Mapping) and "guess" in value:
        place = Random(f"{seed} {path}").random()
        return Block({**value, "value": value["least"] * (value["most"] / value["least"]) ** place})
    if isinstance(value, Mapping):
        return Block({key: _draw_guesses(each, seed, f"{path}.{key}") for key, each in value.items()})
    return value


def expand_sets(listed: tuple[str, ...]) -> tuple[str, ...]:
    """Return model names, with names of sets replaced by their models. Raises ModelError for an unknown name."""
    known = read_models()
    found: list[str] = []
    for name in listed:
        if name not in known.sets and name not in known.models:
            raise _unknown(name, [*known.sets, *known.models])
        found += known.sets.get(name, (name,))
    return tuple(dict.fromkeys(found))


def find_model(name: str, guesses: Guesses = None) -> Model:
    """Return the model of that name. Raises ModelError if there is none."""
    found = read_models(guesses).models
    if name not in found:
        raise _unknown(name, list(found))
    return found[name]


def _unknown(name: str, known: list[str]) -> ModelError:
    return ModelError(f"found the model {quote_value(name)}, expected one of {', '.join(known)}", suggest(name, known))


def divide_model(plan: Plan, workers: int) -> Shape:
    """Return the division of a model between `workers` workers. Raises ModelError if there is none."""
    tensors = plan.tensors if workers % plan.tensors == 0 else 1
    groups = workers // tensors
    parts = next((each for each in range(2, groups + 1) if groups % each == 0), 1) if plan.parts else 1
    return Shape(groups // parts, parts, tensors)


@lru_cache(maxsize=100_000)
def make_profile(name: str, workers: int, batch: int, guesses: Guesses = None) -> Profile:
    """Return the profile of a model on `workers` workers, each with `batch` examples; a single worker sends nothing.

    Times are in ms on a link of 50 Gbit/s, and bytes are those of `roundabout.spec.patterns`. Raises ModelError for an
    unknown model, and for less than one worker or example.
    """
    found = find_model(name, guesses)
    if workers < 1 or batch < 1:
        raise ModelError(f"{name}: found {workers} workers with a batch of {batch}, expected one of each at least")
    plan = read_models().plans[found.plan]
    divided = divide_model(plan, workers)
    weights = sum(part.compute or 0 for part in plan.phases)
    phases = []
    for part in plan.phases:
        if part.compute is not None:
            ms = found.compute_ms.value * batch * part.compute / weights
            phases.append(_phase(name, part, compute_ms=ms))
        elif groups := divided.groups(part.among):
            size = _phase_bytes(found, part, divided, len(groups[0]), batch)
            rate_gbps = read_models(guesses).gbps[part.gbps or ""].value
            everyone = groups == (tuple(range(workers)),)
            reported = {"bytes": size, "alone_ms": size * 8 / rate_gbps / 1e6, "pattern": _pattern(part)}
            phases.append(_phase(name, part, **reported, groups=None if everyone else groups))
    return Profile(
        name=f"{name.lower()}-{workers}x{batch}",
        model=name,
        batch=batch,
        workers=workers if any(phase.groups for phase in phases) else None,
        source=f"the interleaving thesis, Table 4.2; {MODELS_FILE.name}",
        phases=tuple(phases),
    )


def _phase(name: str, part: Part, **fields: Any) -> Phase:
    return Phase(
        name=part.name, guess=f"{MODELS_FILE.name}: {name}, {part.sends or 'compute_ms'}. Effect: there.", **fields
    )


def _pattern(part: Part) -> Pattern:
    return "pipeline" if part.among.startswith("parts") else part.pattern


def _phase_bytes(found: Model, part: Part, divided: Shape, members: int, batch: int) -> int:
    """Return the `bytes` of a phase, as its pattern defines them."""
    sends = part.sends or ""
    whole = found.bytes[sends].value if sends in found.bytes else found.bytes_per_example[sends].value * batch
    rounds = 1.0 if _pattern(part) in ("pipeline", "tree") else 2 * (members - 1) / members
    return max(round(whole * divided.share(part.among) * rounds), 1)


def examples_per_s(name: str, workers: int, batch: int, guesses: Guesses = None) -> float:
    """Return a model's throughput on a dedicated network: examples a second of all workers together."""
    return batch * workers / make_profile(name, workers, batch, guesses).alone_ms * 1000


def noise_examples(name: str, guesses: Guesses = None) -> float:
    """Return a model's gradient noise scale, in examples, for Pollux' statistical efficiency (OSDI'21, section 3.1)."""
    return read_models(guesses).noise_examples[find_model(name).type].value
