# SPDX-License-Identifier: Apache-2.0
"""`roundabout run`: run an experiment and write its report."""

import shlex
import shutil
import sys
from pathlib import Path

from rich.table import Table

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.cli.experiments.plan import describe_changes, describe_iterations, describe_jobs
from roundabout.cli.options import (
    Dilation,
    Exact,
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
    Testbeds,
    UntilDecided,
    WhichExperiment,
    chosen_length,
)
from roundabout.cli.overrides import parse_overrides
from roundabout.cli.runs.resume import load_experiment_of
from roundabout.core.errors import UsageError
from roundabout.plan import Plan
from roundabout.runner.run import Runner, make_run_plan
from roundabout.runner.sweep import Sweep
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec.loader import is_path
from roundabout.store import Run
from roundabout.terminal.execution import execute
from roundabout.terminal.lines import format_duration
from roundabout.terminal.repeated_looks import list_looks, looks_table, run_looks, schedule_of
from roundabout.terminal.screen import Screen
from roundabout.terminal.series_execution import execute_series
from roundabout.terminal.testbed_series import choose_series, print_warnings


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: WhichExperiment,
    quick: Quick = False,
    full: Full = False,
    fields: Set = None,
    only: Only = None,
    repetitions: Repetitions = None,
    exact: Exact = False,
    until_decided: UntilDecided = None,
    runs: Runs = Path("runs"),
    testbed: Testbeds = None,
    inventory: Inventory = None,
    scale: Scale = None,
    dilation: Dilation = None,
    jobs: Jobs = None,
    executor: Executor = None,
    as_json: RunJson = False,
) -> None:
    """Run an experiment: compute it packet by packet, measure it in a lab, and show both beside the paper.

    Each testbed has a run of its own, with a report. With --testbed, an inventory, a scale or a dilation, the
    experiment runs there alone. With --until-decided, on each testbed the run is judged after its own repetitions, and
    at most three times more after doubling them. Intervals are so wide that each verdict is wrong in at most 5 % of
    runs, over all looks together (`plan` lists them).
    """
    if executor and until_decided is not None:
        raise UsageError("found --executor and --until-decided, expected one of them")
    how_much = chosen_length(quick=quick, full=full)
    fields = [*(fields or ()), *(["skip_within=null"] if exact else ())]
    experiment = load_checked_experiment(name, how_much, parse_overrides(fields, only, repetitions))
    series = choose_series(experiment, testbed, inventory, executor=executor, scale=scale, dilation=dilation, jobs=jobs)
    console = Screen(stderr=as_json)
    about = [f"{experiment.name}: {experiment.about}", *describe_changes(experiment), *series.notes]
    console.print(*about, sep="\n", highlight=False, soft_wrap=True)
    print_warnings(experiment, series.providers)
    # A file shall be found again by `resume`, wherever that is called.
    which = str(Path(name).resolve()) if is_path(name) else name

    def run_on(where: TestbedProvider, *, is_last: bool) -> Run:
        # The order is the run's; keys depend on the testbed.
        repeated, looks = experiment, None
        if until_decided is None:
            console.print(plan_overview(make_run_plan(where, experiment, testbed_identity={}, artefacts={})))
        else:
            planned = list_looks(where, experiment, until_decided)
            looks = schedule_of(planned, until_decided)
            console.print(plan_overview(planned[0].plan), looks_table(planned))
            if (least := planned[0].repetitions) > experiment.repetitions:
                repeated = load_checked_experiment(name, how_much, parse_overrides(fields, only, least))

        def work(runner: Runner | Sweep) -> Run:
            if looks is None or isinstance(runner, Sweep):
                return runner.start(repeated, which, runs, how_much)
            return run_looks(
                runner, lambda: runner.start(repeated, which, runs, how_much, looks=looks), load_experiment_of
            )

        return execute(
            work,
            where,
            as_json=as_json,
            executor=executor,
            is_last=is_last,
        )

    execute_series(series.providers, run_on, console, runs)
    if series.lacks_root:
        folder = [] if runs == Path("runs") else ["--runs", str(runs)]
        options = [
            *([f"--{how_much}"] if how_much else []),
            *(word for each in fields for word in ("--set", each)),
            *(word for each in only or () for word in ("--only", each)),
            *([] if repetitions is None else ["--repetitions", str(repetitions)]),
            *([] if until_decided is None else ["--until-decided", f"{until_decided:g}"]),
            *folder,
        ]
        program = "roundabout" if shutil.which("roundabout") else sys.argv[0]  # `make` and `./rb` need none in PATH
        add = shlex.join(["sudo", program, "run", name, *options, "--testbed", "lab"])
        show = shlex.join([program, "compare", experiment.name, "--testbeds", *folder])
        console.print(f"the lab needs root; to add it: {add} && {show}", soft_wrap=True, highlight=False)


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
    result.add_row("report", "", "", "", format_duration(plan.report_s))
    total_s = plan.expected_s + plan.report_s
    result.add_row("all", "", "", str(len(plan.trials)), format_duration(total_s), style="bold")
    return result
