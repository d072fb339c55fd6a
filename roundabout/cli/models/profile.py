# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile`: run a job alone, and determine its period and phases from byte counters."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from analysis.records import profile_maker
from roundabout.cli.models import gpu_profile
from roundabout.cli.options import Inventory, Runs, Testbed, check_output
from roundabout.core.errors import UsageError
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import EXPERIMENTS, Experiment, Profile, load_experiment, load_profile
from roundabout.spec.assembly.library import PROFILES
from roundabout.spec.base import NAME_RULE, Name
from roundabout.spec.reader.yaml_source import dump, shown_path
from roundabout.store import Run
from roundabout.store.files import make_directory, return_tree_to_caller, write_json, write_text
from roundabout.terminal.execution import requested_provider, undo_when_ended
from roundabout.terminal.lines import print_warning
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo

if TYPE_CHECKING:
    from analysis.reading.measured_profile import Difference
    from analysis.statistics.phases import FoundProfile

SAMPLE = EXPERIMENTS / "records" / "ddp-lab-nccl"
ITERATIONS = 40
TOPOLOGY, WORKERS, TRANSPORT = "dumbbell-2x2", ["s0", "s2"], {"name": "dcqcn"}
"""Topology, hosts and transport for a profile that is not a job of an experiment."""


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB]",
            help="A profile, or a job as EXPERIMENT:JOB or FILE:JOB. With --from FILE: further files. With --from-gpu: "
            "a model, and fields such as batch=512 that choose one measurement of it; or a parallel job, and fields "
            "to change in it, such as data=8.",
        ),
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="RUN|FILE",
            help="Run nothing, but use a run in which JOB ran alone, or profiler records of a job: one file for each "
            "rank, or a folder, of NCCL Inspector, PyTorch Kineto, Chakra or nccl-tests.",
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Run nothing, but use sample records: two ranks over NCCL, by PyTorch Kineto."),
    ] = False,
    gpu_record: Annotated[
        Path | None,
        typer.Option("--from-gpu", metavar="FILE", help="Run nothing, but use a model's computing measured on a GPU."),
    ] = None,
    gpu_plan: Annotated[
        bool, typer.Option("--gpu-plan", help="Print the plan of what is to be measured on a GPU, and nothing else.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=2, max=10_000, help="With --from-gpu and a model: number of workers in the ring.")
    ] = gpu_profile.WORKERS,
    payload_gbps: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e6,
            metavar="GBPS",
            help=f"With --from-gpu: payload rate of a worker's link. Default: {gpu_profile.PAYLOAD_GBPS:g}, and "
            f"{gpu_profile.POD_PAYLOAD_GBPS:g} for a parallel job.",
        ),
    ] = None,
    save: Annotated[
        str | None, typer.Option(metavar="NAME", help="Also store the profile as profiles/NAME.yaml in this folder.")
    ] = None,
    runs: Runs = Path("runs"),
    testbed: Testbed = None,
    inventory: Inventory = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and everything else on stderr.")
    ] = False,
) -> None:
    """Run a job alone, and determine its period, phases and demands from the byte counters of its hosts.

    With --from FILE, determine them from profiler records of a cluster's job (docs/how-to/records.md). The resulting
    profile is stored with the run and compared with the profile that was replayed. Without a run, --save stores it:
    experiments in the same folder find it by its name.
    With --from-gpu FILE, use computing measured on a GPU, and compute communication (docs/reference/gpu-computing.md).
    """
    if gpu_plan:
        gpu_profile.print_plan()
        return
    target = _profile_path(save) if save else None
    console = Screen(stderr=as_json)
    if gpu_record:
        if measured:
            raise UsageError("profile: found --from beside --from-gpu, expected one of them")
        gpu_profile.report_gpu_record(
            gpu_record, words or [], target, console, workers=workers, payload_gbps=payload_gbps, as_json=as_json
        )
        return
    if sample and (words or measured):
        raise UsageError("profile: found --sample beside a job or records, expected it alone")
    if named := [SAMPLE] if sample else _named_records(words or [], measured or []):
        profile_maker.report_records(named, target, console, as_json=as_json)
        return
    job = _job(words or [], measured or [])
    if measured:
        run, name = Run.open(measured[0], runs), job
    else:
        run, name = run_document(lone_job_document(job), requested_provider(testbed, inventory), runs, console)
    _report(run, name, target, console, as_json)


def _named_records(words: Sequence[str], measured: Sequence[str]) -> list[Path]:
    """Return the files and folders that --from names, and those after it; none if it names a run."""
    if "" in measured:
        raise UsageError("--from: found an empty name, expected a run, or files of records")
    named = [Path(each) for each in (*measured, *words)]
    if not measured or not _is_record_folder(named[0]) or (named[0].is_dir() and _is_missing(named[-1])):
        return []
    if missing := [each for each in named if _is_missing(each)]:
        raise UsageError(f"--from: found no file {missing[0]}, expected one beside {named[0]}")
    return named


def _is_record_folder(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and not (path / "manifest.json").exists())


def _is_missing(path: Path) -> bool:
    return not path.is_file() and not path.is_dir()


def _job(words: Sequence[str], measured: Sequence[str]) -> str:
    if len(words) != 1 or len(measured) > 1:
        found = " ".join([*words, *(f"--from {each}" for each in measured)]) or "nothing"
        raise UsageError(f"profile: found {found}, expected JOB, JOB --from RUN, or --from FILE... of files that exist")
    return words[0]


def _profile_path(name: str) -> Path:
    """Return the path of a new profile of that name, where experiments in this folder find it."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(f"--save: found '{name}', expected a name of {NAME_RULE}") from None
    path = Path(PROFILES, f"{name}.yaml")
    if existing := next(
        (found for shelf in (Path(PROFILES), EXPERIMENTS / PROFILES) for found in shelf.rglob(path.name)), None
    ):
        raise UsageError(
            f"{shown_path(existing)} exists, expected a new name after --save", "no profile is ever overwritten"
        )
    check_output("--save", path if path.parent.is_dir() else Path(path.name))
    return path


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
        "about": f"What `roundabout profile` runs to find the phases of {name}",
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
    table.add_row("", "", f"{played.alone_ms:.1f}", style="dim")
    return table


def _verdict(differs: "Difference", timed_ms: float) -> str:
    """Describe the difference between the findings and the profile."""
    timed = f"the workers themselves timed iterations of {timed_ms:.1f} ms"
    period = f"period {100 * differs.period_share:.2f} %"
    if differs.edge_share is None or differs.demand_share is None:
        return f"off by: {period}; other phases were found than were played\n{timed}"
    edges, demand = 100 * differs.edge_share, 100 * differs.demand_share
    return f"off by, at worst: {period}, edges {edges:.2f} % of it, demand {demand:.2f} %\n{timed}"
