# SPDX-License-Identifier: Apache-2.0
"""The runs and the published runs of a folder, as the explorer's page lists them."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.reading.cells import CellId
from analysis.reading.fidelity import read_fidelity
from analysis.reports.publishing.publication import ErrorHandler, Publication, publications
from analysis.reports.summary import stored_or_new
from roundabout.core.errors import RoundaboutError
from roundabout.core.verdict_words import Word
from roundabout.store import Run
from roundabout.store.manifest import NAME as MANIFEST
from roundabout.store.trial_states import STATES, state_of_record

PAGE = "explorer.html"
PAGES = {PAGE: "Jobs, links and topology over time", "report.html": "The report of the run's study"}
WORST_FIRST: tuple[Word, ...] = ("fail", "inconclusive", "not measured", "pass")
CELL_FIGURES = ("median_ms", "speedup")


def find_runs(folder: Path) -> list[Run]:
    """Return the runs below a folder of all runs, or of one experiment's, in the order of their start."""
    of_experiment = [Run(path.parent.resolve()) for path in folder.glob(f"*/{MANIFEST}")]
    return sorted([*Run.all(folder), *of_experiment], key=lambda run: run.id)


def describe_runs(folder: Path, page: Path, complain: ErrorHandler) -> list[dict[str, Any]]:
    """Return a record of each run and each published run below `folder`, with links from the page at `page`.

    Pass the error of each that cannot be read to `complain`, and leave it out.
    """
    found: list[dict[str, Any]] = []
    for publication in publications(folder):
        try:
            found.append(_describe_publication(publication, page))
        except RoundaboutError as error:
            complain(error)
    for run in find_runs(folder):
        try:
            found.append(_describe_run(run, page))
        except RoundaboutError as error:
            complain(error)
    return found


def _describe_run(run: Run, page: Path) -> dict[str, Any]:
    testbed = run.manifest["testbed"]
    summary = stored_or_new(run)
    return {
        "experiment": run.experiment,
        "testbed": testbed["kind"],
        "stamp": read_fidelity(testbed).stamp,
        "run": run.id,
        "published": False,
        "trials": _count_states(run),
        "pages": [
            {"name": name.removesuffix(".html"), "about": about, "href": _link(page, run.path / name)}
            for name, about in PAGES.items()
            if (run.path / name).is_file()
        ],
        **_results(summary.record()),
    }


def _describe_publication(publication: Publication, page: Path) -> dict[str, Any]:
    facts, _ = publication.facts, publication.verdicts  # which checks the summary
    figures = [
        {"name": f"figure {number}", "about": each.about, "href": _link(page, publication.folder / each.file)}
        for number, each in enumerate(facts.figures, start=1)
    ]
    return {
        "experiment": facts.experiment,
        "testbed": facts.testbed,
        "stamp": facts.fidelity,
        "run": facts.run,
        "published": True,
        "trials": facts.trials,
        "pages": figures,
        **_results(publication.summary),
    }


def _results(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells, the expectations and the verdicts of the content of a summary.json."""
    expectations = list(_expectations(summary["expectations"]))
    words = Counter(each["verdict"] for each in expectations)
    return {
        "cells": [_cell(each) for each in summary["cells"]],
        "expectations": expectations,
        "verdicts": {word: words[word] for word in WORST_FIRST if words[word]},
    }


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: cell[name] for name in CELL_FIGURES}
    ends = {f"{name}_ci95": cell[_interval_field(name)] for name in CELL_FIGURES}
    return {
        "name": CellId(cell["levels"]).name,
        "job": cell["job"],
        "repetitions": cell["repetitions"],
        "baseline": cell["baseline"],
        "disturbed": cell.get("disturbance") is not None,
        **figures,
        **ends,
    }


def _interval_field(name: str) -> str:
    """Return the name of a figure's interval in summary.json, whose unit comes last."""
    return "median_ci95_ms" if name == "median_ms" else f"{name}_ci95"


def _expectations(records: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each figure that is expected: the parts of an expectation with several."""
    for record in records:
        levels = (f"{name.rpartition('.')[2]} {level}" for name, level in (record["at"] or {}).items())
        about = ", ".join(filter(None, (record["what"], record["of"], record["job"], *levels)))
        parts = record["parts"] or [{**record, "name": ""}]
        for part in parts:
            yield {
                "name": ": ".join(filter(None, (about, part["name"] if len(parts) > 1 else ""))),
                "unit": record["unit"],
                "paper": part["paper"],
                "measured": part["measured"],
                "ci95": part["ci95"],
                "verdict": part["verdict"],
                "expected": record["expected"],
                "basis": record["basis"],
            }


def _count_states(run: Run) -> dict[str, int]:
    states = Counter(state_of_record(record) for record in run.trials())
    return {state: states[state] for state in STATES if states[state]}


def _link(page: Path, path: Path) -> str:
    """Return the relative address of a file from the page."""
    return Path(os.path.relpath(path, page.parent)).as_posix()
