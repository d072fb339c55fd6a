# SPDX-License-Identifier: Apache-2.0
"""The site's pages of executed notebooks: text, code and output, cell by cell."""

import base64
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
from nbformat import NotebookNode

import roundabout
from analysis.notebooks import ONE_ITERATION, notebook_on_run
from analysis.notebooks.execution import execute
from roundabout.core.paths import ROOT
from roundabout.store import Run

SOURCES = ROOT / "analysis/notebooks"
TIMEOUT_S = 300
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_BLANK_LINES = re.compile(r"\n\s*\n")


def format_notebook(source: Path) -> str:
    """Return the page of a notebook, executed on published results, or on a run that is computed for it."""
    if source.stem == ONE_ITERATION:
        with tempfile.TemporaryDirectory() as folder:
            return _format_cells(notebook_on_run(source, _compute_run(Path(folder))), source)
    return _format_cells(jupytext.reads(source.read_text(), source.suffix), source)


def _compute_run(folder: Path) -> Run:
    """Compute two VGG19 jobs of which one is more aggressive (HotNets'22, Figure 1), packet by packet."""
    experiment = roundabout.load_experiment("unfair-vgg19", only=["unfair", "fig-1"], repetitions=1)
    return roundabout.run_experiment(experiment, testbed="packets", runs=folder, quiet=True)


def _format_cells(notebook: NotebookNode, source: Path) -> str:
    """Execute the notebook, and return it as Markdown; the code is that of its source."""
    shown = jupytext.reads(source.read_text(), source.suffix)
    execute(notebook, TIMEOUT_S)
    parts = []
    for cell, own in zip(notebook.cells, shown.cells, strict=True):
        if cell.cell_type == "markdown":
            parts.append(own.source)
        else:
            parts += [f"```python\n{own.source}\n```", *_format_outputs(cell)]
    return "\n\n".join(parts) + "\n"


def _format_outputs(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            encoded = base64.b64encode(data["image/svg+xml"].encode()).decode()
            yield f'<img alt="" src="data:image/svg+xml;base64,{encoded}">'
        elif "text/html" in data:
            yield _BLANK_LINES.sub("\n", _STYLE.sub("", data["text/html"]))
        else:
            yield f"```text\n{data.get('text/plain', output.get('text')).rstrip()}\n```"
