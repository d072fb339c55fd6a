# SPDX-License-Identifier: Apache-2.0
"""Execution of `roundabout judge FILE.bpf.c`, from the program to the page."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from analysis.expectations import judge_metrics as analysis
from analysis.render import screen
from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from roundabout.core.errors import RoundaboutError
from roundabout.judge import experiment, report
from roundabout.judge.figures import JOBS, Scene, add_ratios_to_cubic, failed_conditions
from roundabout.judge.judgement import VERDICT_WORDS, Judgement
from roundabout.judge.kernel_requirements import RUNNING, check_kernels
from roundabout.judge.session import RefusedError, Session
from roundabout.runner.observer import Observer
from roundabout.runner.run import Runner
from roundabout.runner.transports import build_transport
from roundabout.spec import Experiment, load_experiment
from roundabout.spec.condition import Condition
from roundabout.spec.transports import registry
from roundabout.store import Run, new_run_id, scratch
from roundabout.store.files import make_directory, return_tree_to_caller, write_json, write_text
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen, show_paths
from roundabout.terminal.validity import check_measured
from roundabout.testbeds import undo
from roundabout.testbeds.lab.provider import LabProvider

ITERATIONS = 40


class FailedError(RoundaboutError):
    """Error for a condition of `--fail-if` that is met. The exit code is 3."""

    exit_code = 3


@dataclass(frozen=True)
class JudgeRequest:
    """The arguments of the command line."""

    program: Path
    scenes: Sequence[Scene]
    conditions: Sequence[Condition]
    kernels: Sequence[Path]
    runs: Path


def judge(request: JudgeRequest, *, as_json: bool) -> None:
    """Judge a program, and store and show the result.

    Errors are raised after the page is written. Raises RefusedError if the compiler or the kernel rejects the program.
    Raises FailedError if a condition is met, and UnmeasuredError if no trial is valid.
    """
    undo_when_ended()
    console = Screen(stderr=as_json)
    name = registry.program_name(_resolve_source(request))
    # A mistake is reported for this file, not for the experiment that names it.
    registry.find_declaration(name, str(request.program))
    with scratch.folder("judge") as folder:  # nothing is stored of a file that cannot be judged
        jobs = load_experiment(_write_experiment(request, name, folder))
    path = make_directory(request.runs / "judge" / new_run_id())
    written = _write_experiment(request, name, path)
    found = Judgement(name, str(request.program), f"Linux {os.uname().release}")
    refused = None
    try:
        with show_progress(console) as observer:
            _measure(request, found, jobs, written, observer)
    except RefusedError as error:
        found.refused, refused = "\n".join(filter(None, (error.message, error.hint))), error
    _store_result(found, path)
    _show(found, path, console)
    if as_json:
        json.dump(found.record(), sys.stdout, indent=2)
        print()
    if refused:
        raise refused
    if failed := failed_conditions(request.conditions, found.figures[name]):
        described = ", ".join(f"{each} (found {found.figures[name].get(each.quantity)})" for each in failed)
        raise FailedError(f"{name}: {described}")
    if found.run:
        check_measured(Run(Path(found.run)))


def _resolve_source(request: JudgeRequest) -> Path:
    """Return the program's path without links. Reading it reports links in a loop."""
    return Path(os.path.realpath(request.program))


def _write_experiment(request: JudgeRequest, name: str, folder: Path) -> Path:
    return experiment.write_experiment(_resolve_source(request), name, request.scenes, ITERATIONS, folder)


def _measure(request: JudgeRequest, found: Judgement, jobs: Experiment, written: Path, observer: Observer) -> None:
    """Fill `found`, cheapest scene first."""
    trials = {name: cell.spec for cell in jobs.cells for name in cell.spec.transports}
    transport = trials[found.name].transports[found.name]
    assert transport.declaration
    try:
        program, *_ = build_transport(transport.declaration)
    except RoundaboutError as error:
        raise RefusedError(error.message, error.hint) from error
    found.needs, found.kernels = check_kernels(program, (RUNNING, *request.kernels))
    provider = LabProvider()
    runner = Runner(provider, observer, undo)
    found.figures, found.spread = Session(runner, provider, trials, observer.step).measure(
        request.scenes, written.parent
    )
    add_ratios_to_cubic(found.figures)
    if wanted := [scene for scene in request.scenes if scene in JOBS]:
        run = runner.start(jobs, str(written), request.runs)
        run.write_summary(summarize_run(run).record())
        write_report(run)
        return_tree_to_caller(run.path)
        _add_jobs(found, run, wanted)


def _add_jobs(found: Judgement, run: Run, scenes: Sequence[Scene]) -> None:
    """Add the figures of training jobs."""
    found.run = str(run.path)
    found.invalid = [f"{each['variant']}: {each['reason']}" for each in run.trials() if not each["valid"]]
    reported = analysis.job_figures(run)
    for scene in scenes:
        for name, figures in found.figures.items():
            of_trial = reported.get(experiment.variant_name(scene, name), {})
            figures |= {f"{scene.replace('-', '_')}_{what}": value for what, value in of_trial.items()}


def _store_result(found: Judgement, path: Path) -> None:
    write_json(path / "judgement.json", found.record())
    write_text(path / "report.html", report.render_page(found))
    return_tree_to_caller(path)


def _show(found: Judgement, path: Path, console: Console) -> None:
    for table in (*report.figure_tables(found), *report.requirements_tables(found), report.verdict_table(found)):
        console.print(screen.table_renderable(table))
    console.print(Text(report.describe_requirements(found), style="dim"))
    console.print(Text(VERDICT_WORDS, style="dim"))
    show_paths(console, path / "report.html", path / "judgement.json")
