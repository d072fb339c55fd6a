# SPDX-License-Identifier: Apache-2.0
"""Pages become pages of the site: links outside docs/, pages named by path, and code with bars."""

import pytest

from docgen.generation import DOCS
from docgen.site import convert, find_foreign, format_navigation, format_outside
from roundabout.core.paths import ROOT

pytestmark = pytest.mark.unit

PAGE = DOCS / "how-to/training.md"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](rack.md#b) [c](#d)", "[a](rack.md#b) [c](#d)"),
        ("[a](../README.md)", "[a](../index.md)"),
        ("[a](../../trainers/PROTOCOL.md)", "[a](../files/trainers/PROTOCOL.md)"),
        ("[a](../../experiments/schema/profile.json)", "[a](../files/experiments/schema/profile.json.md)"),
        ("see docs/reference/store.md.", "see [Store](../reference/store.md)."),
        ("see `docs/how-to/rack.md`", "see [Rack](rack.md)"),
        ("([rack.md](rack.md#b), [a rack](rack.md))", "([Rack](rack.md#b), [a rack](rack.md))"),
        ("see docs/how-to/training.md", "see docs/how-to/training.md"),
        ("see docs/how-to/absent.md", "see docs/how-to/absent.md"),
        ("    see docs/how-to/rack.md\n", "    see docs/how-to/rack.md\n"),
        (r"| `A\|B` | <c> |", "| <code>A&#124;B</code> | <c> |"),
    ],
)
def test_a_page_is_converted(text: str, expected: str):
    assert convert(text, PAGE, DOCS)[0] == expected


def test_files_outside_the_folder_become_pages():
    _, outside = convert("[a](../../trainers/PROTOCOL.md) [b](rack.md)", PAGE, DOCS)
    assert outside == {ROOT / "trainers/PROTOCOL.md"}
    page = format_outside(ROOT / "experiments/schema/profile.json")
    assert page.startswith("# experiments/schema/profile.json\n\n```json\n{")
    assert page.endswith("}\n```\n")


def test_the_navigation_follows_the_index():
    index = "# Title\n\n[no](entry.md)\n\n## Guides\n\n| | |\n|---|---|\n| [One](a/b.md) | text, [other](c.md) |\n"
    navigation = "  - Home: index.md\n  - Guides:\n      - One: a/b.md\n"
    assert format_navigation(index) == navigation
    more = f"{index}\n### Add\n\n| | |\n|---|---|\n| [Two](a/d.md) | text |\n"
    assert format_navigation(more) == f"{navigation}      - Add:\n          - Two: a/d.md\n"


def test_what_a_page_loads_from_elsewhere_is_found():
    page = """<script src="theme/a.js"></script><a href="https://example.org/">link</a><link href="a.css">
    <script async src="https://unpkg.com/b"></script><link rel="stylesheet" href="//fonts.example/c">"""
    assert find_foreign(page) == ["https://unpkg.com/b", "//fonts.example/c"]


def test_a_notebook_is_shown_with_its_outputs():
    page = format_outside(ROOT / "analysis/notebooks/comparison.md")
    assert page.startswith("# Fair, unfair, MLTCP and Cassini\n")
    assert page.count('<img alt="') == 2
    assert '<img alt="How many ECN marks are left?" src="data:image/svg+xml;base64,' in page
    assert "<td>group compatible</td>" in page
    assert "<style" not in page
