# SPDX-License-Identifier: Apache-2.0
"""Notebooks on a run, which users build on.

They are files for jupytext, and use only `roundabout.api`, numpy, pandas, matplotlib and pyshark.
"""

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
REPORT, DEGRADATION, COMPARISON, ONE_ITERATION = "report", "degradation", "comparison", "one-iteration"
LICENCE = re.compile(r"\A# SPDX-.*\n")  # removed, because it would hide jupytext's header behind it
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook_on_run(source: Path, run: Run) -> NotebookNode:
    """Return the notebook in `source`, a file for jupytext, with the run's folder set in its parameters cell."""
    notebook: NotebookNode = jupytext.reads(LICENCE.sub("", source.read_text()), source.suffix)
    notebook["metadata"] = {"kernelspec": KERNEL}  # a pairing with its source would keep JupyterLab from it
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    cell.source = f"RUN = {str(run.path)!r}"
    return notebook


def source_of(name: str) -> Path:
    """Return the file for jupytext of the notebook called `name`."""
    return Path(__file__).with_name(f"{name}.md")


def fitting_notebook(run: Run) -> str:
    """Return the name of the notebook that fits a run: load sweeps, compared variants of jobs, or one iteration."""
    experiment = experiment_of(run)
    kind = study_of(experiment).kind
    if kind == "load-sweep":
        return DEGRADATION
    is_comparison = kind != "cluster" and len({cell.variant for cell in experiment.cells}) > 1
    return COMPARISON if is_comparison else ONE_ITERATION


def notebook_path(run: Run, name: str) -> Path:
    """Return the path of the notebook called `name` in a run's folder."""
    return run.path / FOLDER / f"{name}.ipynb"


def write_notebooks(run: Run) -> dict[Path, bool]:
    """Write a run's missing notebooks into its folder, and return each path with True if it is new.

    The first one fits the run. Existing notebooks stay, because users may have edited them. Raises UsageError and
    StoreError.
    """
    names = dict.fromkeys((fitting_notebook(run), ONE_ITERATION, REPORT))
    notebooks = {name: notebook_on_run(source_of(name), run) for name in names}
    make_directory(run.path / FOLDER)
    paths = {notebook_path(run, name): notebook for name, notebook in notebooks.items()}
    new = {path: not path.exists() for path in paths}
    for path, notebook in paths.items():
        if new[path]:
            write_text(path, nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    return new
