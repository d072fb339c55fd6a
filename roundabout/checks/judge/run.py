# SPDX-License-Identifier: Apache-2.0
"""Execution of `roundabout judge FILE.bpf.c`, from the program to the page."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.expectations import judge_metrics as analysis
from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from roundabout.checks.check import FailedError, Verdict
from roundabout.checks.judge import experiment
from roundabout.checks.judge.figures import JOBS, Scene, add_ratios_to_cubic, failed_conditions
from roundabout.checks.judge.judgement import PROGRAM, Judgement
from roundabout.checks.judge.kernel_requirements import RUNNING, check_kernels
from roundabout.checks.judge.session import RefusedError, Session
from roundabout.checks.judge.verdicts import verdicts
from roundabout.checks.report import report
from roundabout.core.errors import RoundaboutError
from roundabout.runner.observer import Observer
from roundabout.runner.run import Runner
from roundabout.runner.transports import build_transport
from roundabout.spec import Experiment, load_experiment
from roundabout.spec.condition import Condition
from roundabout.spec.transports import registry
from roundabout.store import Run, new_run_id, scratch
from roundabout.store.files import make_directory, return_tree_to_caller
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen
from roundabout.terminal.validity import check_measured
from roundabout.testbeds import undo
from roundabout.testbeds.lab.provider import LabProvider

ITERATIONS = 40


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
    found = Judgement(name=name, program=str(request.program), system=f"Linux {os.uname().release}")
    refused = None
    try:
        with show_progress(console) as observer:
            _measure(request, found, jobs, written, observer)
    except RefusedError as error:
        found.refused, refused = "\n".join(filter(None, (error.message, error.hint))), error
    found.parts = verdicts_by_part(found)
    report(found, path, console, as_json=as_json)
    if refused:
        raise refused
    if failed := failed_conditions(request.conditions, found.figures[name]):
        described = ", ".join(f"{each} (found {found.figures[name].get(each.quantity)})" for each in failed)
        raise FailedError(f"{name}: {described}")
    for run in found.runs:
        check_measured(Run(Path(run)))


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
    found.runs = [str(run.path)]
    found.invalid = [f"{each['variant']}: {each['reason']}" for each in run.trials() if not each["valid"]]
    reported = analysis.job_figures(run)
    for scene in scenes:
        for name, figures in found.figures.items():
            of_trial = reported.get(experiment.variant_name(scene, name), {})
            figures |= {f"{scene.replace('-', '_')}_{what}": value for what, value in of_trial.items()}


def verdicts_by_part(found: Judgement) -> dict[str, list[Verdict]]:
    """Return the verdicts on the program and, if it was accepted, on its figures."""
    if found.refused:
        return {PROGRAM: [Verdict(found.name, "verifier", "refused: nothing else was measured", "accepted", "fail")]}
    accepted = Verdict(found.name, "verifier", "accepted", "accepted", "pass")
    peers = {name: each for name, each in found.figures.items() if name != found.name}
    return {PROGRAM: [accepted], **verdicts(found.figures[found.name], peers)}
