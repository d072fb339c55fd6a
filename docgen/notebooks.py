# SPDX-License-Identifier: Apache-2.0
"""The site's pages of executed notebooks: text, code and output, cell by cell."""

import base64
import re
import tempfile
from collections.abc import Iterator
from html import escape
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
_PARAMETERS = '```python\nRUN = "last"\n```\n'
_COMPUTED = """On this page the run is one of unfair-vgg19 (HotNets'22, Figure 1), computed packet by packet: two jobs,
of which j1 is more aggressive.
"""
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_BLANK_LINES = re.compile(r"\n\s*\n")


def format_notebook(source: Path) -> str:
    """Return the page of a notebook, executed on published results, or on a run that is computed for it."""
    if source.stem != ONE_ITERATION:
        return _format_cells(jupytext.reads(source.read_text(), source.suffix), source)
    with tempfile.TemporaryDirectory() as folder:
        page = _format_cells(notebook_on_run(source, _compute_run(Path(folder))), source)
    return page.replace(_PARAMETERS, f"{_PARAMETERS}\n{_COMPUTED}", 1)


def _compute_run(folder: Path) -> Run:
    """Compute two VGG19 jobs of which one is more aggressive (HotNets'22, Figure 1), packet by packet."""
    experiment = roundabout.load_experiment("unfair-vgg19", only=["unfair", "fig-1"], repetitions=1)
    return roundabout.run_experiment(experiment, testbed="packets", runs=folder, quiet=True)


def _format_cells(notebook: NotebookNode, source: Path) -> str:
    """Execute the notebook, and return it as Markdown; the code is that of its source."""
    shown = jupytext.reads(source.read_text(), source.suffix)
    execute(notebook, TIMEOUT_S)
    parts, question = [], ""
    for cell, own in zip(notebook.cells, shown.cells, strict=True):
        if cell.cell_type == "markdown":
            parts.append(own.source)
            question = next((line.lstrip("# ") for line in own.source.splitlines() if line.startswith("#")), question)
        else:
            parts += [f"```python\n{own.source}\n```", *_format_outputs(cell, question)]
    return "\n\n".join(parts) + "\n"


def _format_outputs(cell: NotebookNode, question: str) -> Iterator[str]:
    """Yield the outputs of a cell. `question` is the heading above it, and describes its figures."""
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            encoded = base64.b64encode(data["image/svg+xml"].encode()).decode()
            yield f'<img alt="{escape(question)}" src="data:image/svg+xml;base64,{encoded}">'
        elif "text/html" in data:
            table = _STYLE.sub("", data["text/html"]).replace(' border="1" class="dataframe"', "")
            yield _BLANK_LINES.sub("\n", table)
        else:
            yield f"```text\n{data.get('text/plain', output.get('text')).rstrip()}\n```"
