# SPDX-License-Identifier: Apache-2.0
"""What is measured on a GPU: layers with the published parameters, and Table 4.2's models with its batches."""

import json
from typing import Any

import pytest

from roundabout.cli.main import main
from roundabout.spec.training.computing_plan import plan_cases, read_layers
from roundabout.spec.training.training_spec import read_models

pytestmark = pytest.mark.unit


def attention(shape: dict[str, Any]) -> int:
    hidden, heads, head = shape["hidden"], shape["heads"], shape["head"]
    if latent := shape.get("latent"):
        query, key_value, turned = latent["query"], latent["key_value"], latent["turned"]
        down = hidden * (query + key_value + turned) + query + key_value
        return down + query * heads * (head + turned) + key_value * heads * 2 * head + heads * head * hidden
    return 2 * hidden * heads * head + 2 * hidden * shape["kv_heads"] * head


def perceptrons(shape: dict[str, Any]) -> int:
    each = 3 * shape["hidden"] * shape["inner"]
    if experts := shape.get("experts"):
        return (experts + shape.get("common", 0)) * each + experts * shape["hidden"]
    return each


@pytest.mark.parametrize("name", read_layers())
def test_a_layer_has_the_published_parameters(name):
    layer = read_layers()[name]
    norms = 2 * layer.shape["hidden"]
    assert attention(layer.shape) + perceptrons(layer.shape) + norms == layer.parameters


# Of the whole model, without embeddings and, of DeepSeek-V3, without its three layers that have no experts.
@pytest.mark.parametrize(
    ("name", "billions"), [("Llama3-70B", 70.6), ("Llama3-405B", 405), ("Mixtral-8x7B", 46.7), ("DeepSeek-V3", 671)]
)
def test_layers_make_nearly_all_of_the_whole_model(name, billions):
    layer = read_layers()[name]
    assert 0.95 < layer.layers * layer.parameters / billions / 1e9 < 1


def test_each_model_of_table_4_2_is_measured_at_both_ends_of_its_batches():
    measured = [(case["model"], case["batch"]) for case in plan_cases() if case["set"] == "table-4.2"]
    assert sorted(measured) == sorted((name, each) for name, model in read_models().items() for each in model.batch)


def test_no_text_is_longer_than_its_model_has_places():
    for case in plan_cases():
        assert case["input"].get("tokens", 0) <= case["shape"].get("places", 4096)


def test_the_command_prints_the_plan(capsys):
    assert main(["profile", "gpu-plan"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(plan_cases()))
