# SPDX-License-Identifier: Apache-2.0
"""Derivation of the lab's constants from a time-dilated run, for `roundabout calibrate --from RUN`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis.calibration.calibration_targets import (
    Target,
    TargetFit,
    compare_with_targets,
    targets_of,
    training_experiment,
)
from roundabout.spec import Experiment
from roundabout.store import Run, StoreError, new_run_id
from roundabout.store.files import make_directory, write_json
from roundabout.testbeds.lab.calibration.calibration import Calibration, Derivation
from roundabout.testbeds.lab.calibration.parameter_search import Candidate, ParameterSearch
from roundabout.testbeds.lab.errors import LabError

Measure = Callable[[Calibration, Experiment], Run]
"""Runs an experiment in a lab with a calibration, and returns the run."""


@dataclass(frozen=True)
class DilatedRun:
    """The time-dilated run, the targets from its results, and the experiment that measures each candidate."""

    run: Run
    digest: str
    experiment: Experiment
    targets: tuple[Target, ...]

    @classmethod
    def from_run(cls, run: Run) -> "DilatedRun":
        """Read the targets from a stored run. Raises StoreError if its time was not dilated, or if data are missing."""
        return cls(run, run.digest(), training_experiment(run), targets_of(run))

    def derivation(self, misfit: float) -> Derivation:
        """Return the origin of constants with this misfit, for the calibration file."""
        targets = {each.name: round(each.value, 4) for each in self.targets}
        return Derivation(run=self.run.id, hash=self.digest, misfit=round(misfit, 4), targets=targets)


def derive_calibration(
    source: DilatedRun, search: ParameterSearch, runs: Path, console: Console, measure: Measure
) -> Calibration | None:
    """Measure all candidates of `search`, and return the calibration of the best one. None if all were invalid.

    The current calibration is a candidate only for comparison, unless it was derived from a dilated run itself.
    """
    path = make_directory(runs / source.experiment.name) / f"map-{new_run_id()}.json"
    rows: list[dict[str, Any]] = []
    console.print(
        f"meeting run {source.run.id}: {', '.join(_describe_target(each) for each in source.targets)}", highlight=False
    )
    for number, each in enumerate(search, 1):
        console.print(f"try {number} of {search.tries}: {each.name}", style="bold", highlight=False)
        rows.append(_candidate_row(each, source, measure))
        write_json(path, _map(source, rows))  # what an interruption leaves is kept
        best = search.ranking[0] if search.ranking else None
        console.print(_describe_best(rows[-1], best), highlight=False)
    console.print(table(source.targets, rows), f"map  {path}", sep="\n")
    derived = [each for each in search.ranking if each.calibration is not search.kept or search.kept.derived_from]
    if not derived:
        return None
    best = derived[0]
    return best.calibration.model_copy(update={"derived_from": source.derivation(best.misfit or 0.0)})


def table(targets: Sequence[Target], rows: Sequence[dict[str, Any]]) -> Table:
    """Return a table of each candidate's result for each target, the best candidate first."""
    shown = Table(title="what gives which (misfit: in what is allowed)", box=None, title_justify="left")
    shown.add_column("candidate")
    for name in ("misfit", *(each.name for each in targets)):
        shown.add_column(name, justify="right")
    shown.add_row("to be met", "", *(f"{each.value:.3f} ± {each.allowed:.3f}" for each in targets))
    for row in sorted(rows, key=lambda each: float("inf") if each["misfit"] is None else each["misfit"]):
        found = row["found"] or {}
        figures = (f"{found[each.name]:.3f}" if found else "spoilt" for each in targets)
        shown.add_row(row["candidate"], f"{row['misfit']:.2f}" if found else "spoilt", *figures)
    return shown


def _candidate_row(each: Candidate, source: DilatedRun, measure: Measure) -> dict[str, Any]:
    """Return a candidate's row and set its misfit. Figures are None if the machine or the constants made it invalid."""
    constants = each.calibration.model_dump(by_alias=True, include={"timer_scale", "ecn", "transports"})
    row = {"candidate": each.name, "run": None, "constants": constants}
    try:
        run = measure(each.calibration, source.experiment)
        row["run"] = run.id
        found: TargetFit = compare_with_targets(source.targets, run)
    except (LabError, StoreError) as error:
        return {**row, "misfit": None, "found": None, "off": None, "why": error.message}
    each.misfit = found.misfit
    return {**row, "misfit": found.misfit, "found": dict(found.found), "off": dict(found.off)}


def _map(source: DilatedRun, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    targets = {each.name: {"value": each.value, "allowed": each.allowed} for each in source.targets}
    return {"from": source.run.id, "hash": source.digest, "targets": targets, "tries": list(rows)}


def _describe_target(target: Target) -> str:
    return f"{target.name} {target.value:.3f} ± {target.allowed:.3f}"


def _describe_best(row: dict[str, Any], best: Candidate | None) -> str:
    own = f"spoilt: {row['why']}" if row["misfit"] is None else f"misfit {row['misfit']:.2f}"
    return f"  {own}" if best is None else f"  {own}; best so far {best.misfit:.2f}, {best.name}"
