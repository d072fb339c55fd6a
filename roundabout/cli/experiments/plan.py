# SPDX-License-Identifier: Apache-2.0
"""`roundabout plan`: show the trials of an experiment in their order, without running them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from roundabout.cli.experiments.feedback import describe_feedback
from roundabout.cli.options import (
    Dilation,
    Full,
    Inventory,
    Json,
    Only,
    Quick,
    Repetitions,
    Set,
    Testbeds,
    UntilDecided,
    WhichExperiment,
    chosen_length,
)
from roundabout.cli.overrides import parse_overrides
from roundabout.plan import Plan, PlannedTrial
from roundabout.plan.looks import Look
from roundabout.plan.routes import list_routes, record_routes
from roundabout.runner.disturbance.attempt_choice import MAX_REPEATS
from roundabout.runner.run import make_run_plan
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment, TrialSpec
from roundabout.spec.loader import load_experiment
from roundabout.terminal.execution import EVERY_LAB_FACTOR
from roundabout.terminal.lines import format_duration
from roundabout.terminal.repeated_looks import list_looks, looks_table
from roundabout.terminal.screen import Screen
from roundabout.terminal.testbed_series import choose_series, print_warnings


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: WhichExperiment,
    quick: Quick = False,
    full: Full = False,
    fields: Set = None,
    only: Only = None,
    repetitions: Repetitions = None,
    until_decided: UntilDecided = None,
    testbed: Testbeds = None,
    inventory: Inventory = None,
    dilation: Dilation = None,
    as_json: Json = False,
) -> None:
    """Show the trials of an experiment in their order, with their expected durations.

    Of several testbeds, the last one's trials are shown, and how long each takes. With --until-decided, show the first
    look's trials, and on each testbed the looks and those that the budget allows.
    """
    changed = parse_overrides(fields, only, repetitions)
    experiment = load_experiment(name, length=chosen_length(quick=quick, full=full), changes=changed)
    series = choose_series(experiment, testbed, inventory, is_root=True, dilation=dilation)
    for where in series.providers:
        where.check_experiment(experiment)
    print_warnings(experiment, series.providers)
    # Keys depend on the testbed and on what is deployed there, so only a run has them; the order does not.
    if until_decided is None:
        looks = []
        plans = [make_run_plan(where, experiment, testbed_identity={}, artefacts={}) for where in series.providers]
    else:
        looks = [list_looks(where, experiment, until_decided) for where in series.providers]
        plans = [each[0].plan for each in looks]
    if as_json:
        print(json.dumps(_record(plans[-1], series.providers[-1], looks[-1] if looks else []), indent=2))
        return
    console = Screen()
    for line in (*describe_changes(experiment), *series.notes):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(plan_table(plans[-1]))
    for line in describe_routes(cell.spec for cell in experiment.cells):
        console.print(line, highlight=False, soft_wrap=True)
    for line in describe_feedback(cell.spec for cell in experiment.cells):
        console.print(line, highlight=False)
    for where, plan in zip(series.providers, plans, strict=True):
        console.print(f"{_describe_testbed(where, len(plans))}{_describe_amount(plan, where)}", soft_wrap=True)
    for where, planned in zip(series.providers, looks, strict=False):
        console.print(f"looks on {where.where['testbed']}, whose intervals hold together in 95 % of runs:")
        console.print(looks_table(planned))


def _describe_testbed(where: TestbedProvider, of: int) -> str:
    """Return the testbed's name, if it is one of several, and its scale and dilations, if any are given."""
    factors = [f"{name} {where.where[name]}" for name in EVERY_LAB_FACTOR if name in where.where]
    if not factors:
        return f"{where.where['testbed']}: " if of > 1 else ""
    return f"{where.where['testbed']} ({', '.join(factors)}): "


def _describe_amount(plan: Plan, where: TestbedProvider) -> str:
    """Return the number of trials and their expected duration as text."""
    repeats = "" if where.computes else f"; what is spoilt is repeated, {MAX_REPEATS} times at most"
    trials = f"{len(plan.trials)} trial{'' if len(plan.trials) == 1 else 's'}"
    report = f", and {format_duration(plan.report_s)} for the report"
    return f"{trials}, about {format_duration(plan.expected_s)}{report}{repeats}"


def describe_changes(experiment: Experiment) -> list[str]:
    """Return one line that describes the experiment's overrides, or no line without overrides."""
    reported = [f"{path} {json.dumps(value)}" for path, value in experiment.changes.items()]
    return [f"changed: {'; '.join(reported)}"] if reported else []


def plan_table(plan: Plan) -> Table:
    """Return the plan as a table with a row for each trial."""
    factors = [factor for factor in plan.experiment.factors if factor != "variant"]
    result = Table("trial", "repetition", "variant", *factors, "jobs", box=None, header_style="bold", pad_edge=False)
    for column in ("iterations", "expected"):
        result.add_column(column, justify="right")
    for number, trial in enumerate(plan.trials, start=1):
        levels = [str(trial.levels[factor]) for factor in factors]
        cells = [str(number), str(trial.repetition), trial.variant, *levels, describe_jobs(trial.spec)]
        result.add_row(*cells, describe_iterations(trial.spec), format_duration(trial.expected_s))
    return result


def describe_jobs(spec: TrialSpec) -> str:
    """Return a description of a trial's jobs, or of the scheduler if the trial has a cluster."""
    return f"a trace, by {spec.cluster.describe}" if spec.cluster else ", ".join(spec.jobs)


def describe_iterations(spec: TrialSpec) -> str:
    """Return the number of iterations of a trial's jobs as text: `50`, or `50, 20` if jobs differ."""
    return ", ".join(dict.fromkeys(str(spec.iterations_of(job)) for job in spec.jobs))


def describe_routes(specs: Iterable[TrialSpec]) -> list[str]:
    """Return a line for each route of a flow, once, and none if all topologies are trees."""
    lines: dict[str, None] = {}
    for spec in specs:
        routing = spec.topology.routing
        if routing is not None and spec.topology.spreads_packets:
            lines[f"routes of {spec.topology.name} ({routing.name}): packets of a flow take different paths"] = None
        elif routing is not None and not spec.topology.is_tree:
            reported = f", {routing.hash} hash" if routing.name != "static" else ""
            lines[f"routes of {spec.topology.name} ({routing.name}, seed {routing.seed}{reported}):"] = None
            if spec.cluster:
                lines["  those of a trace's jobs are decided with their placements; trial.json records them"] = None
            lines |= dict.fromkeys(f"  {route}" for route in list_routes(spec))
    return list(lines)


def _record(plan: Plan, where: TestbedProvider, looks: Sequence[Look]) -> dict[str, Any]:
    planned = [
        {
            "repetitions": look.repetitions,
            "trials": len(look.plan.trials),
            "expected_s": round(look.expected_s, 1),
            "is_allowed": look.is_allowed,
        }
        for look in looks
    ]
    return {
        "experiment": plan.experiment.name,
        "where": dict(where.where),
        "changes": plan.experiment.changes,
        "expected_s": round(plan.expected_s, 1),
        "report_s": round(plan.report_s, 1),
        **({"looks": planned} if planned else {}),
        "trials": [_trial(trial) for trial in plan.trials],
    }


def _trial(trial: PlannedTrial) -> dict[str, Any]:
    delay = trial.spec.feedback_delay
    return {
        "variant": trial.variant,
        "levels": trial.levels,
        "repetition": trial.repetition,
        "jobs": list(trial.spec.jobs),
        "iterations": trial.spec.iterations,
        "seed": trial.seed,
        "feedback_us": delay and [round(each, 3) for each in delay],
        "expected_s": round(trial.expected_s, 1),
        **record_routes(trial.spec),
    }
