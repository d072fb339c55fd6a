# SPDX-License-Identifier: Apache-2.0
"""The plan of what `trainers/torch/computing/measurement.py` measures on a GPU: models, batches and inputs.

Models are those of training_models.yaml, and layers those of layer_models.yaml.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from roundabout.spec.base import Strict, Text
from roundabout.spec.reader.yaml_source import read_document
from roundabout.spec.training.training_spec import Model, read_models

LAYERS = Path(__file__).with_name("layer_models.yaml")
TOKENS = 4096
"""Tokens of the one text that a layer computes: a guess. Attention's part of the time grows with it."""
Set = Literal["table-4.2", "layers", "large-inputs"]
SMALL_INPUTS = {"vgg": {"image": 32}, "resnet": {"image": 32}, "bert": {"tokens": 128}, "gpt": {"tokens": 128}}
"""Inputs of the trainers, with which the table's batches fit a GPU (trainers/torch/training_networks.py)."""
LARGE_INPUTS = {"vgg": {"image": 224}, "resnet": {"image": 224}, "bert": {"tokens": 512}, "gpt": {"tokens": 1024}}
"""Inputs of the models' papers. GPT-1 has only 512 places for tokens."""


class LayerModel(Strict):
    """A model of which one layer is measured. Host programs read `shape`; each of `shares` is a worker's part of it."""

    layers: Annotated[int, Field(gt=0)]
    parameters: Annotated[int, Field(gt=0)] = Field(description="parameters of one whole layer")
    shape: dict[str, Any]
    shares: Annotated[tuple[dict[Literal["tensors", "experts"], int], ...], Field(min_length=1, strict=False)]
    source: Text | None = None
    guess: Text | None = None


@cache
def read_layers() -> dict[str, LayerModel]:
    """Return the models of layer_models.yaml, by name."""
    return {name: LayerModel.model_validate(reported) for name, reported in read_document(LAYERS).root.items()}


def plan_cases() -> list[dict[str, Any]]:
    """Return all cases that are measured, the most valuable first.

    A case has its `set`, `model`, `batch`, `shape`, `input`, and of a layer the worker's `share` and the model's
    `layers`.
    """
    return [*_layer_cases(), *_table_cases(), *_large_cases()]


def _table_cases() -> Iterator[dict[str, Any]]:
    """Yield each model of Table 4.2 at both ends of the table's batches."""
    for place in (0, 1):
        for name, model in read_models().items():
            yield _case("table-4.2", name, model, model.batch[place], SMALL_INPUTS.get(model.kind, {}))


def _large_cases() -> Iterator[dict[str, Any]]:
    """Yield each model of Table 4.2 with the inputs of its own paper, at the table's least batch."""
    for name, model in read_models().items():
        if given := LARGE_INPUTS.get(model.kind):
            places = model.shape.get("places", TOKENS)
            fitting = {kind: min(most, places) if kind == "tokens" else most for kind, most in given.items()}
            yield _case("large-inputs", name, model, model.batch[0], fitting)


def _case(which: Set, name: str, model: Model, batch: int, given: dict[str, int]) -> dict[str, Any]:
    return {"set": which, "model": name, "batch": batch, "input": given, "shape": model.shape}


def _layer_cases() -> Iterator[dict[str, Any]]:
    """Yield each layer's first share, then the other ones."""
    which: Set = "layers"
    shares = [(place, name, share) for name, model in read_layers().items() for place, share in enumerate(model.shares)]
    for _, name, share in sorted(shares, key=lambda each: each[0]):
        model = read_layers()[name]
        case = {"set": which, "model": name, "batch": 1, "input": {"tokens": TOKENS}, "shape": model.shape}
        yield {**case, "share": share, "layers": model.layers}
