# SPDX-License-Identifier: Apache-2.0
"""Runs with repeated looks: repetitions are added until each verdict is decided or a budget of time is spent."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace

from rich.table import Table

from roundabout.plan import Plan
from roundabout.plan.looks import Look, plan_looks
from roundabout.runner.run import Runner, make_run_plan
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment
from roundabout.store import Run
from roundabout.store.look_schedule import LookSchedule
from roundabout.terminal.lines import format_duration

LoadRepetitions = Callable[[Run, int], Experiment]  # loads a run's experiment with another number of repetitions


def list_looks(where: TestbedProvider, experiment: Experiment, minutes: float) -> list[Look]:
    """Return the looks at a run of the experiment on a testbed, for a budget in minutes.

    The first one has the experiment's own repetitions, but as many as an interval takes, if repetitions can differ.
    """
    from analysis.statistics.intervals import MIN_REPETITIONS  # noqa: PLC0415 - its import takes a second

    def make(repetitions: int) -> Plan:
        changed = experiment.model_copy(update={"repetitions": repetitions})
        return make_run_plan(where, changed, testbed_identity={}, artefacts={})

    least = 1 if where.repeats_nothing(experiment) else MIN_REPETITIONS
    return plan_looks(make, max(experiment.repetitions, least), minutes * 60)


def schedule_of(looks: list[Look], minutes: float) -> LookSchedule | None:
    """Return the schedule of the allowed looks; None if there is only one."""
    allowed = tuple(each.repetitions for each in looks if each.is_allowed)
    return LookSchedule(allowed, minutes * 60) if len(allowed) > 1 else None


def looks_table(looks: list[Look]) -> Table:
    """Return the looks as a table. The expected times are from the start to the report of each look."""
    table = Table("look", box=None, header_style="bold", pad_edge=False)
    for heading in ("repetitions", "trials", "expected in all"):
        table.add_column(heading, justify="right")
    table.add_column("within the budget")
    for number, look in enumerate(looks, start=1):
        is_allowed = "always" if number == 1 else "yes" if look.is_allowed else "no"
        expected = format_duration(look.expected_s)
        table.add_row(str(number), str(look.repetitions), str(len(look.plan.trials)), expected, is_allowed)
    return table


def run_looks(runner: Runner, begin: Callable[[], Run], load: LoadRepetitions) -> Run:
    """Run `begin`, then add the repetitions of one look after the other until all verdicts are decided.

    End earlier if the schedule in the run's manifest has no further look within the budget. Without a schedule, only
    run `begin`.
    """
    from analysis.expectations.repetition_needs import can_be_decided  # noqa: PLC0415 - as above
    from analysis.reports.summary import summarize_run  # noqa: PLC0415

    began = time.monotonic()
    run = begin()
    while schedule := LookSchedule.of(run.manifest):
        runner.observer.step("judging the expectations")
        done = run.manifest["experiment"]["repetitions"]
        undecided = sum(can_be_decided(each, done) for each in summarize_run(run).expectations)
        now = time.monotonic()
        schedule, began = replace(schedule, spent_s=schedule.spent_s + now - began), now
        with run.hold():
            run.write_manifest({**run.manifest, "looks": asdict(schedule)})
        following = schedule.after(done)
        if not undecided or following is None:
            break
        runner.observer.step(f"undecided after {done} repetitions: {undecided}; continuing with {following}")
        run = runner.extend(run, load(run, following))
    return run
