# SPDX-License-Identifier: Apache-2.0
"""The execution of a report's notebook."""

import warnings

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from analysis.notebooks.execution import execute

pytestmark = pytest.mark.unit


def test_a_warning_is_shown_without_the_path_of_its_module() -> None:
    notebook = new_notebook(cells=[new_code_cell("import warnings; warnings.warn('axes collapsed')")])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        execute(notebook, 10)
    assert [each.text for each in notebook.cells[0].outputs] == ["UserWarning: axes collapsed\n"]
