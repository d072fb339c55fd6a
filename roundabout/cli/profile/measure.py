# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile measure`: run a job alone, and determine its period and phases from byte counters."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from analysis.records import profile_maker
from roundabout.cli.options import Inventory, Runs, Testbed
from roundabout.cli.profile.stored_profile import ResultJson, Save, new_profile_path
from roundabout.core.errors import UsageError
from roundabout.core.milliseconds import format_ms
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment, Profile, load_experiment, load_profile
from roundabout.spec.assembly.library import PROFILES
from roundabout.spec.reader.yaml_source import dump, shown_path
from roundabout.store import Run
from roundabout.store.files import make_directory, return_tree_to_caller, write_json, write_text
from roundabout.store.manifest import NAME as MANIFEST
from roundabout.terminal.execution import requested_provider, undo_when_ended
from roundabout.terminal.lines import print_warning
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo

if TYPE_CHECKING:
    from analysis.reading.measured_profile import Difference
    from analysis.statistics.phases import FoundProfile

ITERATIONS = 40
TOPOLOGY, WORKERS, TRANSPORT = "dumbbell-2x2", ["s0", "s2"], {"name": "dcqcn"}
"""Topology, hosts and transport for a profile that is not a job of an experiment."""


def measure(  # noqa: PLR0913, PLR0917 - one a command-line option
    job: Annotated[str, typer.Argument(metavar="JOB", help="A profile, or a job as EXPERIMENT:JOB or FILE:JOB.")],
    measured: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Run nothing, but use a run in which JOB ran alone.")
    ] = None,
    save: Save = None,
    runs: Runs = Path("runs"),
    testbed: Testbed = None,
    inventory: Inventory = None,
    as_json: ResultJson = False,
) -> None:
    """Run a job alone, and determine its period, phases and demands from the byte counters of its hosts.

    The resulting profile is stored with the run and compared with the profile that was replayed.
    """
    target = new_profile_path(save) if save else None
    console = Screen(stderr=as_json)
    if measured is None:
        run, name = run_document(lone_job_document(job), requested_provider(testbed, inventory), runs, console)
    elif not measured:
        raise UsageError("--from: found an empty name, expected a run")
    elif Path(measured).is_file() or (Path(measured).is_dir() and not Path(measured, MANIFEST).exists()):
        raise UsageError(
            f"--from: found {measured}, expected a run", f"for records: roundabout profile records {measured}"
        )
    else:
        run, name = Run.open(measured, runs), job
    _report(run, name, target, console, as_json)


def lone_job_document(which: str) -> dict[str, Any]:
    """Return the document of an experiment in which one job runs alone once.

    `which` is EXPERIMENT:JOB, FILE:JOB, or a profile. Raises UsageError if the job does not exist, and SpecError for an
    invalid file.
    """
    experiment, _, job = which.rpartition(":")
    if experiment:
        source = load_experiment(experiment)
        name = f"{source.name}-{job}"
        topology, treatment = _first_combination(source, job)
    else:
        name, job, topology = load_profile(which).name, "j1", TOPOLOGY
        treatment = {"profile": name, "workers": WORKERS, "transport": TRANSPORT}
    return {
        "schema": 1,
        "name": f"profile-{name}"[:64],
        "about": f"The job alone, in which `roundabout profile measure` finds the phases of {name}",
        "topology": topology,
        "jobs": {job: treatment},
        "iterations": ITERATIONS,
    }


def _first_combination(experiment: Experiment, job: str) -> tuple[str, dict[str, Any]]:
    """Return the topology and the job as the experiment's first combination with that job has it."""
    for cell in experiment.cells:
        if job in cell.spec.jobs:
            return cell.spec.topology.name, cell.spec.jobs[job].as_document
    known = sorted({name for cell in experiment.cells for name in cell.spec.jobs})
    raise UsageError(f"{experiment.name} has no job '{job}', expected one of {', '.join(known)}")


def run_document(document: dict[str, Any], place: TestbedProvider, runs: Path, console: Console) -> tuple[Run, str]:
    """Run the experiment of a document with one job, and return the run and the job's name.

    The experiment's file is stored beside the run, so that `resume` finds it.
    """
    from roundabout.runner.run import Runner  # noqa: PLC0415
    from roundabout.terminal.run_progress import show_progress  # noqa: PLC0415 - `--help` need not wait for it

    undo_when_ended()
    folder = make_directory(runs / document["name"])
    file = folder.resolve() / "experiment.yaml"
    write_text(file, dump(document))
    with show_progress(console) as observer:
        run = Runner(place, observer, undo).start(load_experiment(file), str(file), runs)
    return run, next(iter(document["jobs"]))


def _report(run: Run, job: str, target: Path | None, console: Console, as_json: bool) -> None:
    from analysis.reading.disturbance import describe_effect  # noqa: PLC0415
    from analysis.reading.measured_profile import compare_profiles, find_lone_job, profile_of  # noqa: PLC0415
    from analysis.statistics.phases import find_phases  # noqa: PLC0415

    measured = find_lone_job(run, job, allow_disturbed=True)
    if measured.disturbance is not None:
        print_warning(f"{describe_effect(measured.disturbance)}: no trial of {job} alone is valid; repeat it when idle")
    played = measured.job.profile
    found = find_phases(measured.workers())
    differs = compare_profiles(found, played)
    name = target.stem if target else f"{played.name[:55]}-measured"
    profile = profile_of(measured, found, name)
    folder = run.path / PROFILES
    paths = [folder / f"{name}.yaml", *([target] if target else [])]
    for path in paths:
        profile_maker.store_profile(path, profile)
    timed_ms = measured.timed_ms()
    result = {
        "run": run.id,
        "trial": measured.trial,
        "disturbance": measured.disturbance,
        "job": job,
        "found": asdict(found),
        "played": played.name,
        "timed_ms": timed_ms,
        "difference": asdict(differs),
        "profile": str(paths[-1]),
    }
    write_json(folder / f"{name}.json", result)
    return_tree_to_caller(folder)
    console.print(_table(found, played), _verdict(differs, timed_ms), sep="\n", highlight=False)
    console.print(*(f"profile  {shown_path(path)}" for path in paths), sep="\n", soft_wrap=True, highlight=False)
    if as_json:
        print(json.dumps(result, indent=2))


def _table(found: "FoundProfile", played: Profile) -> Table:
    """Return the findings, each figure above the one that was played."""
    from analysis.reading.measured_profile import iteration_parts  # noqa: PLC0415

    parts = iteration_parts(played, found)
    table = profile_maker.untitled_table("Found in the byte counters; below, as played")
    table.add_column("")
    for heading in ("begins, ms", "lasts, ms", "sends, MB", "demand, Gbit/s"):
        table.add_column(heading, justify="right")
    for index, phase in enumerate(found.phases):
        figures = [profile_maker.estimate_cell(phase.begin_ms, 1), profile_maker.estimate_cell(phase.duration_ms, 1)]
        sends = (
            [profile_maker.estimate_cell(phase.bytes, 1, 1e6), profile_maker.estimate_cell(phase.gbps, 2)]
            if phase.sends
            else []
        )
        table.add_row("send" if phase.sends else "compute", *figures, *sends)
        if parts:
            part = parts[index]
            played_sends = [f"{part.bytes / 1e6:.1f}", f"{part.gbps:.2f}"] if phase.sends else []
            table.add_row("", f"{part.begin_ms:.1f}", f"{part.duration_ms:.1f}", *played_sends, style="dim")
    table.add_row("iteration", "", profile_maker.estimate_cell(found.period_ms, 1), style="bold")
    table.add_row("", "", format_ms(played.alone_ms), style="dim")
    return table


def _verdict(differs: "Difference", timed_ms: float) -> str:
    """Describe the difference between the findings and the profile."""
    timed = f"the workers themselves timed iterations of {format_ms(timed_ms)} ms"
    period = f"period {100 * differs.period_share:.2f} %"
    if differs.edge_share is None or differs.demand_share is None:
        return f"off by: {period}; other phases were found than were played\n{timed}"
    edges, demand = 100 * differs.edge_share, 100 * differs.demand_share
    return f"off by, at worst: {period}, edges {edges:.2f} % of it, demand {demand:.2f} %\n{timed}"
