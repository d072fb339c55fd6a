# SPDX-License-Identifier: Apache-2.0
"""What a run's study found, shown: on a terminal, and as one self-contained page, made by executing its notebook."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbconvert import HTMLExporter
from rich.console import Group, RenderableType
from rich.text import Text
from traitlets.config import Config

from analysis.notebooks import on_run
from analysis.reading.cells import experiment_of
from analysis.render import screen, verdicts
from analysis.render.page import whole_page
from analysis.results import Summary
from analysis.studies import DEFAULT, named, study_of
from roundabout.errors import RoundaboutError
from roundabout.store import Run, scratch
from roundabout.store.files import write_text

TIMEOUT_S = 300
START_TIMEOUT_S = 300  # of a kernel, on a machine that has much else to do


class _Loop(asyncio.SelectorEventLoop):
    """Leaves Ctrl-C and SIGTERM to whoever answers them: nbclient would end its kernel, and then stumble over that."""

    def add_signal_handler(self, *_: object) -> None:
        raise RuntimeError


class ReportError(RoundaboutError):
    """The report cannot be made."""


def on_terminal(results: Summary) -> RenderableType:
    """The study's tables, every verdict, what was invalid, and how real it is; made for 80 columns."""
    return Group(
        *named(results.study.kind or DEFAULT).screen(results),
        *map(screen.shown, verdicts.screen(results.expectations)),
        *(
            Text(f"invalid: {trial.name or trial.key}: {trial.reason}", style="yellow")
            for trial in results.invalid_trials
        ),
        Text(results.testbed.fidelity.stamp, style="dim"),
    )


def render(run: Run) -> Path:
    """Execute the notebook of the run's study and write its report.html; returns the path. Raises ReportError."""
    study = study_of(experiment_of(run))
    notebook = on_run(study.notebook, run)
    with _scratch() as folder:
        try:
            # IPC: socket files that only we can open, where TCP would be a port that every local user can. Unless they
            # are told where, they lie in the working folder, under names that two reports at a time would share.
            config = Config(KernelManager={"transport": "ipc", "ip": str(folder / "kernel")})
            client = NotebookClient(
                notebook, config=config, kernel_name="python3", timeout=TIMEOUT_S, startup_timeout=START_TIMEOUT_S
            )
            with asyncio.Runner(loop_factory=_Loop) as runner:
                runner.run(client.async_execute())
        except CellExecutionError as error:
            raise ReportError(
                f"{study.kind}: {error.ename}: {error.evalue}",
                f"the run itself is intact in {run.path}; this is a bug in the notebook",
            ) from error
        except CellTimeoutError as error:
            raise ReportError(
                f"{study.kind}: a cell ran for more than {TIMEOUT_S} s, expected it to end",
                f"the run itself is intact in {run.path}; try again when this machine has less to do",
            ) from error
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic", exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True
    )
    body, _ = exporter.from_notebook_node(notebook)
    path = run.path / "report.html"
    write_text(path, whole_page(f"{run.experiment} {run.id}", body))
    return path


@contextmanager
def _scratch() -> Iterator[Path]:
    """Jupyter and IPython keep files in the home directory unless told otherwise; these go when the kernel has gone."""
    names = ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    before = {name: os.environ.get(name) for name in names}
    with scratch.folder("report") as folder:
        os.environ.update(dict.fromkeys(names, str(folder)))
        try:
            yield folder
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
