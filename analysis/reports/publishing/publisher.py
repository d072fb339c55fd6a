# SPDX-License-Identifier: Apache-2.0
"""Publishing of a run: its checks, and the files below `results/`."""

import re
import shlex
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from analysis.expectations.results import Summary
from analysis.render.page import collect_figures, svg_of
from analysis.reports.publishing.history import has_revision
from analysis.reports.publishing.publication import (
    FACTS,
    RESULTS,
    SUMMARY,
    Facts,
    Publication,
    PublishedFigure,
    format_json,
    published_content,
)
from analysis.reports.report import execute_report
from analysis.reports.summary import summarize_run
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.store import Run
from roundabout.store.files import make_directory, write_text
from roundabout.store.look_schedule import LookSchedule
from roundabout.store.trial_states import counted_trials, state_of_record

LARGEST_BYTES = 40_000
"""Limit of a figure's file: the publications of all experiments on all testbeds stay below 5 MB together."""


class PublishError(RoundaboutError):
    """A run that cannot be published."""


def publish_run(run: Run, results: Path = RESULTS, *, force: bool = False) -> Publication:
    """Write the publication of a run below `results`, in place of the one that is there.

    Raises PublishError if the run was altered, is incomplete or invalid, or ran with code that is uncommitted or not in
    the checkout's history, and if a newer run is published there, unless `force` is given. Raises StoreError if a
    stored file is missing or changed.
    """
    check_publishable(run)
    testbed = str(run.manifest["testbed"]["kind"])
    published = Publication(results / run.experiment / testbed)
    if not force and (published.folder / FACTS).exists() and published.facts.run > run.id:
        raise PublishError(
            f"{published.folder} has run {published.facts.run}, which is newer than {run.id}",
            "publish a newer run, or add --force to replace the newer one",
        )
    summary = summarize_run(run)
    drawn = choose_figures(draw_figures(run), shown_figures(run.experiment, testbed, ROOT / "docs"))
    facts = describe_run(run, summary, [figure for figure, _ in drawn])
    make_directory(published.folder)
    for left in published.folder.glob("figure-*.svg"):
        left.unlink()
    for figure, svg in drawn:
        write_text(published.folder / figure.file, svg)
    write_text(published.folder / SUMMARY, format_json(published_content(summary.record())))
    write_text(published.folder / FACTS, format_json(facts.model_dump(mode="json")))
    return Publication(published.folder)


def check_publishable(run: Run) -> None:
    """Raise PublishError with the first reason why the run cannot be published."""
    experiment = run.manifest["experiment"]
    fields = experiment.get("set", {}).items()
    changes = [f"--set {path}={value}" for path, value in fields if path not in ("repetitions", "only")]
    changes += [f"--only {level}" for level in experiment.get("only", [])]
    if changes:
        raise PublishError(
            f"{run.path} was altered by {', '.join(changes)}",
            "run the experiment as its file states it, then publish that run",
        )
    trials, planned = run.trials(), {each["key"] for each in run.manifest["plan"]}
    missing = planned - {each["trial"] for each in trials}
    if missing or not planned:
        raise PublishError(
            f"{run.path} is incomplete: {len(planned) - len(missing)} of {len(planned)} trials are committed",
            f"finish it: roundabout resume {run.path}",
        )
    counted = counted_trials(trials)
    cells = {(each["levels"], each.get("job")) for each in trials}
    invalid = cells - {(each["levels"], each.get("job")) for each in trials if each["trial"] in counted}
    if invalid:
        raise PublishError(
            f"{run.path} is invalid: {len(invalid)} of {len(cells)} cells have no valid trial",
            f"see each trial's reason: roundabout status {run.path}; then run the experiment again",
        )
    for session in run.manifest.get("sessions", []):
        code = session.get("code", {})
        if code.get("dirty") or not code.get("revision"):
            found = "with uncommitted changes" if code.get("dirty") else "without a known revision"
            raise PublishError(
                f"{run.path} ran on {session['started_utc'][:19]} {found} of the code",
                "commit the changes and run the experiment again, so that others can repeat it",
            )
        if has_revision(code["revision"], ROOT) is False:
            raise PublishError(
                f"{run.path} ran on revision {code['revision'][:12]}, which is not in the history of HEAD in {ROOT}",
                "others cannot check that code out: run the experiment again on a commit of this branch, or merge "
                "that revision into it",
            )
    if not run.manifest.get("sessions"):
        raise PublishError(f"{run.path} records no session", "run the experiment again with this version")


def describe_run(run: Run, summary: Summary, figures: list[PublishedFigure]) -> Facts:
    """Return the facts of a run that passes `check_publishable`."""
    trials, manifest = run.trials(), run.manifest
    counted = counted_trials(trials)
    states = [state_of_record(each) for each in trials]
    code = manifest["sessions"][-1]["code"]
    machine: dict[str, Any] = next((each["machine"] for each in trials if "machine" in each), {})
    begins, ends = ([datetime.fromisoformat(each[name]) for each in trials] for name in ("started_utc", "ended_utc"))
    return Facts(
        run=run.id,
        experiment=run.experiment,
        testbed=manifest["testbed"]["kind"],
        nature=summary.testbed.fidelity.nature,
        fidelity=summary.testbed.fidelity.stamp,
        command=command_of(manifest),
        length=manifest.get("length"),
        version=code["version"],
        revision=code["revision"],
        machine={name: value for name, value in machine.items() if name != "name"},
        trials={state: states.count(state) for state in dict.fromkeys(states)},
        disturbed=any(state_of_record(each) == "disturbed" for each in trials if each["trial"] in counted),
        wall_s=round((max(ends) - min(begins)).total_seconds(), 1),
        figures=tuple(figures),
    )


def command_of(manifest: Mapping[str, Any]) -> str:
    """Return the command that repeats a run that was not altered."""
    experiment, testbed, where = manifest["experiment"], manifest["testbed"], manifest.get("where", {})
    words = ["roundabout", "run", experiment["name"]]
    words += [f"--{manifest['length']}"] if manifest.get("length") else []
    words += [] if testbed["kind"] == "rack" else ["--testbed", testbed["kind"]]
    looks = LookSchedule.of(manifest)
    repetitions = looks.repetitions[0] if looks else experiment.get("set", {}).get("repetitions")
    words += [] if repetitions is None else ["--repetitions", str(repetitions)]
    words += ["--until-decided", f"{looks.budget_s / 60:g}"] if looks else []
    for name in ("scale", "dilation") if testbed["kind"] == "lab" else ():
        own = f"{experiment[name]:g}" if experiment.get(name) else None
        chosen = where.get(name)
        # A dilation that is given switches the transport's own off, even if it is the experiment's.
        switches = name == "dilation" and experiment.get("transport_dilation") and "transport_dilation" not in where
        if chosen and (chosen != own or switches):
            words += [f"--{name}", chosen]
    return shlex.join(words)


def choose_figures(drawn: list[tuple[str, str]], shown: Collection[str]) -> list[tuple[PublishedFigure, str]]:
    """Return the first of (description, SVG) and those whose files are among `shown`, with their files' names.

    A file has the figure's number in the report. Figures above `LARGEST_BYTES` are left out.
    """
    small = [
        (PublishedFigure(file=f"figure-{number}.svg", about=about), svg)
        for number, (about, svg) in enumerate(drawn, start=1)
        if len(svg.encode()) <= LARGEST_BYTES
    ]
    return [*small[:1], *(each for each in small[1:] if each[0].file in shown)]


def shown_figures(experiment: str, testbed: str, docs: Path) -> set[str]:
    """Return the files of a publication's figures that pages below `docs` show."""
    link = re.compile(rf"\bresults/{re.escape(experiment)}/{re.escape(testbed)}/(figure-\d+\.svg)")
    return {file for page in docs.rglob("*.md") for file in link.findall(page.read_text())}


def draw_figures(run: Run) -> list[tuple[str, str]]:
    """Return the figures of the run's report as descriptions and SVGs, in their order on the page."""
    with collect_figures() as figures:
        execute_report(run)
        return [(about, svg_of(figure)) for figure, about in figures]
