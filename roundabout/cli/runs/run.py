# SPDX-License-Identifier: Apache-2.0
"""`roundabout run`: run an experiment and write its report."""

from pathlib import Path

from rich.table import Table

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.cli.options import (
    Dilation,
    Executor,
    Full,
    Inventory,
    Jobs,
    Only,
    Quick,
    Repetitions,
    RunJson,
    Runs,
    Scale,
    Set,
    Testbed,
    WhichExperiment,
    chosen_length,
    collect_overrides,
)
from roundabout.cli.experiments.plan import describe_changes, describe_iterations, describe_jobs
from roundabout.terminal.lines import format_duration
from roundabout.terminal.execution import provider_for_experiment, execute
from roundabout.terminal.screen import Screen
from roundabout.plan import Plan
from roundabout.runner.run import make_run_plan
from roundabout.spec.load import is_path


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: WhichExperiment,
    quick: Quick = False,
    full: Full = False,
    fields: Set = None,
    only: Only = None,
    repetitions: Repetitions = None,
    runs: Runs = Path("runs"),
    testbed: Testbed = None,
    inventory: Inventory = None,
    scale: Scale = None,
    dilation: Dilation = None,
    jobs: Jobs = None,
    executor: Executor = None,
    as_json: RunJson = False,
) -> None:
    """Run an experiment: create a testbed, execute all trials, store their measurements, and report."""
    how_much = chosen_length(quick=quick, full=full)
    experiment = load_checked_experiment(name, how_much, collect_overrides(fields, only, repetitions))
    where = provider_for_experiment(experiment, testbed, inventory, scale=scale, dilation=dilation, jobs=jobs)
    # The order is the run's; keys depend on the testbed.
    plan = make_run_plan(where, experiment, testbed_identity={}, artefacts={})
    about = [f"{experiment.name}: {experiment.about}", *describe_changes(experiment), plan_overview(plan)]
    Screen(stderr=as_json).print(*about, sep="\n", highlight=False)
    # A file shall be found again by `resume`, wherever that is called.
    which = str(Path(name).resolve()) if is_path(name) else name
    execute(lambda runner: runner.start(experiment, which, runs, how_much), where, as_json=as_json, executor=executor)


def plan_overview(plan: Plan) -> Table:
    """Return a table of the plan with a row for each combination of levels, and the total."""
    cells: dict[tuple[str, str, str], list[float]] = {}
    for trial in plan.trials:
        levels = " ".join(str(level) for level in trial.levels.values()) or trial.variant
        row = (levels, describe_jobs(trial.spec), describe_iterations(trial.spec))
        cells.setdefault(row, []).append(trial.expected_s)
    result = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("variant", "jobs"):
        result.add_column(heading)
    for heading in ("iterations", "trials", "expected"):
        result.add_column(heading, justify="right")
    for cell, expected in cells.items():
        result.add_row(*cell, str(len(expected)), format_duration(sum(expected)))
    result.add_row("all", "", "", str(len(plan.trials)), format_duration(plan.expected_s), style="bold")
    return result
