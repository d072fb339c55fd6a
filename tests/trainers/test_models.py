# SPDX-License-Identifier: Apache-2.0
"""Table 4.2's models: their parameters, counted from their shapes as papers count them, and their batches."""

import itertools
from typing import Any

import pytest
import yaml

from roundabout.models.cluster.models import MODELS_FILE
from roundabout.spec.training.training_spec import Model, read_models

pytestmark = pytest.mark.unit

LABELS = 1000


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def vgg(convolutions: list[int]) -> int:
    counted, channels = 0, 3
    for count, outputs in zip(convolutions, (64, 128, 256, 512, 512), strict=True):
        counted += linear(9 * channels, outputs) + (count - 1) * linear(9 * outputs, outputs)
        channels = outputs
    return counted + linear(512 * 49, 4096) + linear(4096, 4096) + linear(4096, LABELS)


def resnet(bottlenecks: list[int], width: int) -> int:
    def normed(inputs: int, outputs: int, size: int) -> int:
        return inputs * outputs * size**2 + 2 * outputs

    counted, channels = normed(3, 64, 7), 64
    for stage, count in enumerate(bottlenecks):
        inner, outputs = width * 2**stage, 256 * 2**stage
        counted += normed(channels, outputs, 1)
        for given in [channels] + [outputs] * (count - 1):
            counted += normed(given, inner, 1) + normed(inner, inner, 3) + normed(inner, outputs, 1)
        channels = outputs
    return counted + linear(channels, LABELS)


def layer(hidden: int) -> int:
    attention, perceptron = 4 * linear(hidden, hidden), linear(hidden, 4 * hidden) + linear(4 * hidden, hidden)
    return attention + perceptron + 2 * 2 * hidden


def bert(*, words: int, places: int, kinds: int, hidden: int, layers: int, heads: int) -> int:
    head = linear(hidden, hidden) + 2 * hidden + words
    return (words + places + kinds + 2) * hidden + layers * layer(hidden) + head


def gpt(*, words: int, places: int, hidden: int, layers: int, heads: int, norm_first: bool) -> int:
    return (words + places) * hidden + layers * layer(hidden) + (2 * hidden if norm_first else 0)


def dlrm(tables: int, rows: int, dim: int, bottom: list[int], top: list[int]) -> int:
    def perceptron(widths: list[int]) -> int:
        return sum(linear(*pair) for pair in itertools.pairwise(widths))

    pairs = (tables + 1) * tables // 2
    return tables * rows * dim + perceptron(bottom) + perceptron([pairs + dim, *top])


COUNTS = {"vgg": vgg, "resnet": resnet, "bert": bert, "gpt": gpt, "dlrm": dlrm}


@pytest.mark.parametrize("name", read_models())
def test_a_shape_has_the_published_parameters(name):
    model = read_models()[name]
    given = {key: value for key, value in model.shape.items() if key != "kind"}
    count: Any = COUNTS[model.kind]
    assert count(**given) == model.parameters


def test_models_have_the_published_parameter_counts():
    published = {
        "VGG11": 132_863_336,
        "VGG16": 138_357_544,
        "VGG19": 143_667_240,
        "ResNet50": 25_557_032,
        "WideResNet101": 126_886_696,
        "GPT1": 116_534_784,
        "GPT2-XL": 1_557_611_200,
    }
    assert {name: read_models()[name].parameters for name in published} == published


def test_each_says_its_source_or_what_is_guessed():
    for model in read_models().values():
        assert (model.source is None) != (model.guess is None)
        assert model.source or "Effect: " in str(model.guess)


def test_models_with_a_source_have_the_tables_size():
    for model in read_models().values():
        if model.source:
            assert model.parameters * 4 / 2**20 == pytest.approx(model.memory_mb[0], abs=1)


def test_clusters_have_the_same_batches_and_memory():
    """roundabout/models/cluster/models.yaml is of jobs that are played; both have the table's."""
    played: dict[str, Any] = yaml.safe_load(MODELS_FILE.read_text())["models"]

    def table(model: Model) -> tuple[list[int], list[int]]:
        return [*model.batch], [*model.memory_mb]

    for name in set(read_models()) & set(played):
        fields = played[name] if "batch" in played[name] else {**played[played[name]["like"]], **played[name]}
        assert table(read_models()[name]) == (fields["batch"], fields["memory_mb"])
