# SPDX-License-Identifier: Apache-2.0
"""Notebooks on a run: the notebook of its report, and a starter for a user's own analysis."""

import re
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from analysis.reading.cells import experiment_of
from analysis.studies import study_of
from roundabout.store import Run
from roundabout.store.files import make_directory, write_text

FOLDER = "notebooks"
STARTER = Path(__file__).with_name("starter.md")
LICENCE = re.compile(r"\A# SPDX-.*\n")  # removed, because it would hide jupytext's header behind it
STYLE = "# The page's own look\nfrom analysis.render import page\n\npage.style_block()"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook_on_run(source: Path, run: Run) -> NotebookNode:
    """Return the notebook in `source`, a file for jupytext, with the run's folder set in its parameters cell."""
    notebook: NotebookNode = jupytext.reads(LICENCE.sub("", source.read_text()), source.suffix)
    notebook["metadata"] = {"kernelspec": KERNEL}  # a pairing with its source would keep JupyterLab from it
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    cell.source = f"RUN = {str(run.path)!r}"
    return notebook


def write_notebooks(run: Run) -> dict[Path, bool]:
    """Write a run's missing notebooks into its folder, and return each path with True if it is new.

    Existing notebooks stay, because users may have edited them. Raises UsageError and StoreError.
    """
    report, own = notebook_on_run(study_of(experiment_of(run)).notebook, run), notebook_on_run(STARTER, run)
    report.cells.insert(0, nbformat.v4.new_code_cell(STYLE))  # type: ignore[no-untyped-call]
    folder = make_directory(run.path / FOLDER)
    paths = {folder / "report.ipynb": report, folder / "own.ipynb": own}
    new = {path: not path.exists() for path in paths}
    for path, notebook in paths.items():
        if new[path]:
            write_text(path, nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    return new
