# SPDX-License-Identifier: Apache-2.0
"""Reports of a run's study: on a terminal, and as one self-contained page, made by executing its notebook."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup
from nbformat import NotebookNode
from rich.console import Group, RenderableType
from rich.text import Text

from analysis.expectations import verdict_tables
from analysis.expectations.results import DisturbedTrial, Summary
from analysis.notebooks import notebook_on_run
from analysis.notebooks.execution import CellTimeoutError, execute
from analysis.reading.cells import experiment_of
from analysis.reading.disturbance import MARK, describe_effect
from analysis.render import screen
from analysis.render.page import markdown_html, render_document
from analysis.reports.delays import delays_html
from analysis.statistics.intervals import repeated_looks
from analysis.studies import DEFAULT, find_study, study_of
from roundabout.core.errors import RoundaboutError
from roundabout.store import Run
from roundabout.store.files import write_text

TIMEOUT_S = 300  # for one cell; a figure takes less than a second


class ReportError(RoundaboutError):
    """The report cannot be made."""


def terminal_report(results: Summary) -> RenderableType:
    """Return the study's tables, all verdicts, disturbed and invalid trials, and the run's fidelity, for 80 columns."""
    return Group(
        *find_study(results.study.kind or DEFAULT).screen(results),
        *map(screen.table_renderable, verdict_tables.screen(results.expectations)),
        *(
            Text(f"{describe_disturbed(trial)}: {trial.name or trial.key}: {trial.reason}", style="yellow")
            for trial in results.disturbed_trials
        ),
        *(
            Text(f"invalid: {trial.name or trial.key}: {trial.reason}", style="yellow")
            for trial in results.invalid_trials
        ),
        *(
            [Text(f"95 % intervals hold at all {results.looks} looks together", style="dim")]
            if results.looks > 1
            else []
        ),
        Text(results.testbed.fidelity.stamp, style="dim"),
    )


def describe_disturbed(trial: DisturbedTrial) -> str:
    """Return the mark of a disturbed trial, with the estimated effect, or with the note that it is left out."""
    return describe_effect(trial.effect) if trial.counted else f"{MARK}, left out"


def execute_report(run: Run) -> NotebookNode:
    """Return the notebook of the run's study, executed. Raises ReportError."""
    study = study_of(experiment_of(run))
    notebook = notebook_on_run(study.notebook, run)
    try:
        with repeated_looks(run.planned_looks):
            execute(notebook, TIMEOUT_S)
    except CellTimeoutError as error:
        raise ReportError(
            f"{study.kind}: a cell ran for more than {TIMEOUT_S} s, expected it to end",
            f"the run itself is intact in {run.path}; try again when this machine has less to do",
        ) from error
    except Exception as error:
        raise ReportError(
            f"{study.kind}: {type(error).__name__}: {error}",
            f"the run itself is intact in {run.path}; this is a bug in the notebook",
        ) from error
    return notebook


def write_report(run: Run) -> Path:
    """Execute the notebook of the run's study and write its report.html; return the path. Raises ReportError.

    Attributed delays that `roundabout explain --report` has stored are the last section.
    """
    body = Markup("\n").join([*_parts(execute_report(run)), delays_html(run)])
    path = run.path / "report.html"
    write_text(path, render_document(f"{run.experiment} {run.id}", body))
    return path


def _parts(notebook: NotebookNode) -> Iterator[Markup]:
    """Yield the HTML of the notebook's text and outputs, without its code."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield markdown_html(cell.source)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                yield Markup(data["text/html"])  # noqa: S704 - of the study's own notebook
            else:
                yield Markup("<pre>{}</pre>").format(data.get("text/plain", output.get("text")))
