# SPDX-License-Identifier: Apache-2.0
"""The explorer's pages. A page holds its data and its programs, and loads nothing from files or servers."""

import base64
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.explorer.run_list import PAGE, describe_runs
from analysis.explorer.trial_course import count_series, describe_trial, limit_windows, read_tables, trial_name
from analysis.reading.cached_run import CachedRun
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.data import iterations
from analysis.reading.fidelity import fidelity_of
from analysis.render.page import fill_template
from analysis.render.style import JOBS
from analysis.reports.publishing.publication import ErrorHandler
from roundabout.core.errors import UsageError
from roundabout.spec import TrialSpec
from roundabout.store import Run
from roundabout.store.files import write_text
from roundabout.store.trial_states import counted_trials

FOLDER = Path(__file__).parent
SCRIPTS = ("elements.js", "charts.js", "topology.js", "live.js", "trial.js", "run_list.js", "explorer.js")
MAX_TRIALS = 24
"""Limit of the trials of a run on one page, which bounds its size; `--trial` chooses others."""


class NoIterationsError(UsageError):
    """Error for a run that has no course to show: no trial that counts, or only queues of jobs without iterations."""


def explore_folder(folder: Path, page: Path, complain: ErrorHandler) -> Path:
    """Write the page on all runs and published runs below `folder`, and return its path.

    Raises UsageError if there are none that can be read. The error of each unreadable one goes to `complain`.
    """
    runs = describe_runs(folder, page, complain)
    if not runs:
        raise UsageError(
            f"found no run and no published run in {folder}, expected a run's folder, or one of runs or results",
            "name a folder such as runs or results, or begin with `roundabout run`",
        )
    return write_page(page, f"Runs in {folder}", {"kind": "folder", "folder": str(folder), "runs": runs})


def explore_run(run: Run, page: Path, trials: Sequence[str] = ()) -> Path:
    """Write the page on a run's trials, and return its path.

    `trials` are keys; without them the first repetition of each cell is shown. Raises UsageError for an unknown trial,
    and NoIterationsError.
    """
    return write_page(page, f"{run.experiment} {run.id}", run_content(run, trials))


def run_content(run: Run, trials: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of the page on a run's trials; see `explore_run`."""
    run = CachedRun(run)
    records = run.trials()
    chosen = _choose(run, records, trials)
    series = max(count_series(TrialSpec.model_validate(record["spec"])) for record in chosen)
    tables = read_tables(run, [record["trial"] for record in chosen])
    windows = limit_windows(len(chosen), series)
    keys = {record["trial"] for record in chosen}
    return {
        **describe_empty_run(run),
        "trials": [describe_trial(record, tables, windows) for record in chosen],
        "others": [trial_name(record) for record in records if record["trial"] not in keys],
    }


def describe_empty_run(run: Run) -> dict[str, Any]:
    """Return the content of the page on a run without trials."""
    fidelity = fidelity_of(run)
    return {
        "kind": "run",
        "experiment": run.experiment,
        "run": run.id,
        "nature": fidelity.nature,
        "stamp": fidelity.stamp,
        "cannot": list(fidelity.cannot),
        "colors": list(JOBS),
        "trials": [],
        "others": [],
    }


def page_of_run(run: Run) -> Path:
    """Return the default path of a run's page."""
    return run.path / PAGE


def pack(content: Any) -> str:
    """Return content as JSON, compressed by gzip, in base64; the same for equal content."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def unpack(packed: str) -> Any:
    """Return the content that `pack` packed."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def _choose(run: Run, records: list[dict[str, Any]], trials: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of the trials that the page shows, in the order of the experiment's levels."""
    counted = counted_trials(records)
    if trials:
        known = {record["trial"]: record for record in records}
        if unknown := [key for key in trials if key not in known]:
            raise UsageError(f"--trial: found no trial {unknown[0]} in {run.path}", "the page lists all keys")
        counted = frozenset(trials)
    played = set(iterations(run)["trial"].unique().to_pylist())  # trials of a queue of jobs have no iterations
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in sorted(records, key=lambda each: each["repetition"]):
        if record["trial"] in counted & played:
            cell = (record["trial"],) if trials else (record["levels"], record.get("job"))
            found.setdefault(cell, record)
    if not found:
        raise NoIterationsError(f"{run.path}: found no iterations that count, expected some", "see `roundabout status`")
    places = {CellId(cell.levels): place for place, cell in enumerate(experiment_of(run).cells)}
    return sorted(found.values(), key=lambda each: (places[CellId.of(each)], each["job"] or ""))[:MAX_TRIALS]


def write_page(page: Path, title: str, content: dict[str, Any], refresh_s: int | None = None) -> Path:
    """Write a page with this content, which a browser loads anew every `refresh_s`, and return its path."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, render(title, content, refresh_s))
    return page


def render(title: str, content: dict[str, Any], refresh_s: int | None = None) -> str:
    """Return the HTML of a page with this content."""
    return fill_template(
        "explorer",
        title=title,
        styles=[_read("uplot/uPlot.min.css"), _read("page/explorer.css")],
        license=_read("uplot/LICENSE"),
        scripts=[_read("uplot/uPlot.iife.min.js"), *(_read(f"page/{name}") for name in SCRIPTS)],
        content=pack(content),
        refresh_s=refresh_s,
    )


def _read(name: str) -> Markup:
    return Markup((FOLDER / name).read_text())  # noqa: S704 - of ours, or pinned by a checksum
