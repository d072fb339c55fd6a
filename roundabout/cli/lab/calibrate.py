# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate`: candidates for the lab's constants, compared with the papers or with a dilated run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from roundabout.cli.options import Runs
from roundabout.core.errors import UsageError
from roundabout.runner.run import Runner
from roundabout.spec import Experiment
from roundabout.spec.assembly.explanation import explain_error
from roundabout.spec.assembly.merge import merge
from roundabout.spec.errors import quote_value
from roundabout.spec.load import load_experiment
from roundabout.spec.reader.yaml_source import Block, Document, read_document, shown_path
from roundabout.store import Run, StoreError, new_run_id
from roundabout.store.files import write_json
from roundabout.terminal.execution import undo_when_ended
from roundabout.terminal.live_display import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo
from roundabout.testbeds.lab.calibration.calibration import DEFAULT, Calibration, load_calibration, store_calibration
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.provider import LabProvider

EXPERIMENT = "calibrate-dcqcn"
CANDIDATES = DEFAULT.with_name("candidates.yaml")
TRIES = 24
COLUMNS = ("excess", "difference", "drift", "share", "gain", "worst")


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    only: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Candidates to try; all by default.")
    ] = None,
    candidates: Annotated[Path, typer.Option(help="Overlays on the lab's calibration, by name.")] = CANDIDATES,
    source: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Meet this run, in which time was stretched, instead.")
    ] = None,
    tries: Annotated[int | None, typer.Option(min=1, help=f"So many of them, with --from; {TRIES} by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Which ones, with --from.")] = None,
    runs: Runs = Path("runs"),
    write: Annotated[bool, typer.Option("--write", help="Make the best candidate the lab's calibration.")] = False,
) -> None:
    """Try constants of the lab, and show the results of each.

    Named ones are held against the papers and the fluid model. With --from others are searched, with which the lab
    does what it did in a run with time stretched: published parameters, and nothing calibrated.
    """
    if source and only:
        raise UsageError(f"found --from and the candidates {', '.join(only)}, expected one of them")
    if not source and (tries or seed) is not None:
        raise UsageError("found --tries or --seed without --from, expected a run that is to be met")
    undo_when_ended()
    console = Screen()
    found = (
        _derive(Run.open(source, runs), tries or TRIES, 1 if seed is None else seed, runs, console)
        if source
        else _best_candidate(_read(candidates, only or []), runs, console)
    )
    if write and found is not None:
        version = _store_if_good(*found)
        console.print(f"{DEFAULT.name} is now version {version}: {found[0]}")


def _store_if_good(name: str, calibration: Calibration, off: float) -> int:
    """Store the calibration, and return its version. Raises LabError if it is further off than allowed."""
    if off > 1:
        raise LabError(f"{name}: found it off by {off:.2f} times what it may be, expected 1 at most; nothing was kept")
    version = load_calibration().version + 1
    store_calibration(calibration.model_copy(update={"version": version}))
    return version


def _best_candidate(
    tried: dict[str, Calibration], runs: Path, console: Console
) -> tuple[str, Calibration, float] | None:
    """Try named candidates; return the best, with its name and deviation. None if all were invalid."""
    path = runs / EXPERIMENT / f"map-{new_run_id()}.json"
    rows: list[dict[str, Any]] = []
    for name, calibration in tried.items():
        rows.append(_try_candidate(name, calibration, runs, console))
        write_json(path, rows)  # what an interruption leaves is kept
    console.print(_table(rows), f"map  {path}", sep="\n")
    best = min((row for row in rows if row["worst"] is not None), key=lambda row: float(row["worst"]), default=None)
    return None if best is None else (best["candidate"], tried[best["candidate"]], best["worst"])


def _derive(run: Run, tries: int, seed: int, runs: Path, console: Console) -> tuple[str, Calibration, float] | None:
    """Search constants that meet a run; return the best, with its origin and misfit. None if all were invalid."""
    from roundabout.cli.lab.derivation import DilatedRun, derive_calibration  # noqa: PLC0415 - `--help` need not wait for it
    from roundabout.testbeds.lab.calibration.parameter_search import ParameterSearch  # noqa: PLC0415
    from roundabout.testbeds.lab.calibration.proposals import load_ranges  # noqa: PLC0415

    def measure(calibration: Calibration, experiment: Experiment) -> Run:
        return _run(experiment, experiment.name, calibration, runs, console)

    best = derive_calibration(
        DilatedRun.from_run(run),
        ParameterSearch(load_ranges(), load_calibration(), tries, seed),
        runs,
        console,
        measure,
    )
    if best is None or best.derived_from is None:
        return None
    return f"derived from run {run.id}", best, best.derived_from.misfit


def _read(path: Path, only: list[str]) -> dict[str, Calibration]:
    kept = load_calibration()
    document = read_document(path, shown_path(path))
    found = {name: kept if document.root[name] is None else _candidate(document, name, kept) for name in document.root}
    unknown = sorted(set(only) - set(found))
    if unknown:
        raise LabError(f"{path}: found no candidate {', '.join(unknown)}, expected some of: {', '.join(found)}")
    return {name: found[name] for name in only or found}


def _candidate(document: Document, name: str, kept: Calibration) -> Calibration:
    """Return `kept` as the overlay of that name changes it. Raises SpecError."""
    overlay = document.root[name]
    if not isinstance(overlay, Block):
        raise document.error(
            (name,), quote_value(overlay), f"an overlay on {DEFAULT.name}: a mapping of fields to values"
        )
    base = kept.model_dump(by_alias=True, exclude={"derived_from"})  # a changed calibration is not the derived one
    merged = merge(base, overlay)
    try:
        return Calibration.model_validate(merged)
    except ValidationError as error:
        raise explain_error(error, document, Calibration, merged) from None


def _try_candidate(name: str, calibration: Calibration, runs: Path, console: Console) -> dict[str, Any]:
    """Run one candidate and judge it. Figures are None if the machine or the constants made it invalid."""
    from analysis.calibration.calibration import judge_calibration  # noqa: PLC0415 - `--help` need not wait for it

    console.print(f"candidate {name}", style="bold", highlight=False)
    run = _run(load_experiment(EXPERIMENT), EXPERIMENT, calibration, runs, console)
    row: dict[str, Any] = {"candidate": name, "run": run.id, **dict.fromkeys(COLUMNS)}
    try:
        judgement = judge_calibration(run)
    except StoreError as error:
        return {**row, "why": error.message}
    return {**row, **asdict(judgement), "worst": judgement.worst}


def _run(experiment: Experiment, which: str, calibration: Calibration, runs: Path, console: Console) -> Run:
    with show_progress(console) as observer:
        return Runner(LabProvider(calibration), observer, undo).start(experiment, which, runs)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="what gives which (worst: up to 1 all is kept)", box=None, title_justify="left")
    table.add_column("candidate")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda each: each["worst"] or float("inf")):
        shown = ("spoilt" if row[column] is None else f"{row[column]:.3f}" for column in COLUMNS)
        table.add_row(row["candidate"], *shown)
    return table
