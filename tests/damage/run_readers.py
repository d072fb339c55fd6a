# SPDX-License-Identifier: Apache-2.0
"""Commands and functions that read the folder of a run."""

import contextlib
import io
from collections.abc import Callable
from typing import Any

from analysis import notebooks
from analysis.reports import scoreboard
from roundabout import api
from roundabout.cli.main import main
from roundabout.core.errors import RoundaboutError
from roundabout.dashboards.run import run_series
from roundabout.store import Run, schemas


def read_scoreboard(run: Run) -> int:
    errors: list[RoundaboutError] = []
    list(scoreboard.newest_runs(run.path.parents[1], errors.append))
    return len(errors)


def read_tables(run: Run) -> int:
    opened = api.open_run(run.path)
    for name in schemas.TABLES:
        opened.table(name)
    return len(opened.trials())


def command(*words: str) -> Callable[[Run], Any]:
    def read(run: Run) -> int:
        return main([word.format(run=run.path, runs=run.path.parents[1], out=run.path.parents[2]) for word in words])

    return read


READERS: dict[str, Callable[[Run], Any]] = {
    "report": command("report", "--json", "{run}"),
    "runs": command("runs", "--runs", "{runs}"),
    "status": command("status", "{run}"),
    "status by name": command("status", "tiny", "--json", "--runs", "{runs}"),
    "compare": command("compare", "{run}", "{run}"),
    "export tables": command("export", "--csv", "{out}/csv", "{run}"),
    "export a trace": command("export", "--trace", "first", "--to", "{out}/trace.json", "{run}"),
    "explore": command("explore", "{run}"),
    "explore a folder": command("explore", "{runs}"),
    "watch": command("watch", "{run}"),
    "resume": command("resume", "{run}"),
    "rm": command("rm", "--yes", "{run}"),
    "advise": command("advise", "{run}"),
    "profile": command("profile", "measure", "j1", "--from", "{run}"),
    "decode": command("decode", "{run}"),
    "scoreboard": read_scoreboard,
    "dashboards": lambda run: list(run_series(run.path.parents[1])),
    "notebook": lambda run: notebooks.write_notebooks(Run.open(run.path)),
    "tables": read_tables,
}


def read(reader: Callable[[Run], Any], run: Run) -> tuple[Any, str]:
    """Return what a reader returns, and what it says on both streams."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = reader(run)
        except RoundaboutError as error:
            status = error.exit_code
            print(f"error: {error.message}", file=said)
    return status, said.getvalue()
