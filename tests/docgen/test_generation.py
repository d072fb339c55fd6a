# SPDX-License-Identifier: Apache-2.0
"""The generated files of docs/ are those that the code gives now, and say what it declares."""

import pytest

from docgen import commands, experiment_fields, gallery, python_interface, quantities, transports
from docgen.generation import DOCS, FILES
from roundabout import api

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_current(name):
    assert (DOCS / name).read_text() == FILES[name](), "run `python -m docgen` and commit what it writes"


def test_the_gallerys_pictures_are_current():
    found = {str(path.relative_to(DOCS)): path.read_text() for path in (DOCS / gallery.PICTURES).rglob("*.svg")}
    assert found == gallery.draw_pictures(), "run `python -m docgen` and commit what it writes"


def test_an_option_has_its_value_its_help_and_its_default():
    page = commands.format_page()
    assert "| `--period-error PERCENT` | Tolerance of iteration times for the circle's perimeter. | `1.0` |" in page
    assert "    roundabout cassini [OPTIONS] PROFILE...\n" in page
    assert "### roundabout lab up\n" in page


def test_a_parameter_has_its_unit_its_default_and_its_limits():
    assert "| `T_us` | us | `125.0` | 1 to 1e+09 | the default here |" in transports.format_page()


def test_a_quantity_has_its_unit_and_what_it_needs():
    page = quantities.format_page()
    assert "| ECN marks per iteration | marks | The mean number of ECN marks" in page
    assert page.index("## Curves") < page.index("| iteration time under load | s |")


def test_the_python_interface_is_described_as_a_whole():
    described = {name for names in python_interface.GROUPS.values() for name in names}
    assert set(api.__all__) - described == {"STYLE", "Interval", "Results"}
    page = python_interface.format_page()
    assert "iterations(run: Run) -> pd.DataFrame\n" in page
    assert "#### Degradation.forecast\n" in page


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, "whole number ≥ 1, ≤ 9"),
        ({"type": "number", "maximum": 1e9}, "number"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}, "number"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "list of text, at least 2"),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}, "[number, text]"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"$ref": "#/$defs/CrossTraffic"}, "[Cross Traffic](#cross-traffic)"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "mapping of names to number"),
    ],
)
def test_values_are_described_in_words(schema, words):
    assert experiment_fields.describe_value(schema) == words
