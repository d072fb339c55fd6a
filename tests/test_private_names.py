# SPDX-License-Identifier: Apache-2.0
"""Tests replace no private names that they give as text; `make lint` finds all other uses of private names."""

import re

import pytest

from roundabout.core.paths import ROOT
from tests.tracked_files import project_files

pytestmark = pytest.mark.unit

# An attribute's name as text: in `setattr` and the like, or after an object in a list of pairs.
AS_TEXT = re.compile(r"""(?:(?:attr|patch|object)\(|\([\w.]+,)\s*(?:[\w.]+,\s*)?["'](?:[\w.]+\.)?_[a-z]\w*["'][,)]""")


def test_tests_replace_no_private_names() -> None:
    files = [path for path in project_files() if path.startswith("tests/") and path.endswith(".py")]
    found = {
        path: AS_TEXT.findall((ROOT / path).read_text()) for path in files if path != "tests/test_private_names.py"
    }
    assert len(found) > 100
    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "source",
    [
        "setattr(run, '_path', 1)",
        "monkeypatch.setattr(journal.Journal, '_save', f)",
        "monkeypatch.setattr('roundabout.testbeds.lab.lab._remove', f)",
        "patch.object(journal, '_write')",
        "STEPS = ((profile, '_run'), (os, 'execv'))",
    ],
)
def test_a_private_name_is_found(source: str) -> None:
    assert AS_TEXT.search(source)
