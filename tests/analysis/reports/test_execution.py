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


def test_a_cell_may_await_and_shows_the_figures_that_it_opens() -> None:
    source = "import asyncio\nimport matplotlib.pyplot as plt\nplt.subplots()\nawait asyncio.sleep(0, 'done')"
    notebook = new_notebook(cells=[new_code_cell(source), new_code_cell("plt.get_fignums()")])
    execute(notebook, 10)
    figure, value = notebook.cells[0].outputs
    assert figure.data["image/svg+xml"].startswith("<svg")
    assert value.data["text/plain"] == "'done'"
    assert [each.data for each in notebook.cells[1].outputs] == [{"text/plain": "[]"}]
