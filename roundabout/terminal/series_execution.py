# SPDX-License-Identifier: Apache-2.0
"""Execution of an experiment on several testbeds, and their comparison at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from roundabout.runner.testbed import TestbedProvider
from roundabout.store import Run
from roundabout.terminal.lines import print_notice, print_warning
from roundabout.terminal.screen import show_page
from roundabout.terminal.validity import UnmeasuredError

if TYPE_CHECKING:
    from analysis.reports.testbed_comparison import TestbedComparison


class Execution(Protocol):
    """The execution of the experiment on one testbed of several."""

    def __call__(self, where: TestbedProvider, *, is_last: bool) -> Run:
        """Return the run, whose report is written. Raises UnmeasuredError if it has no valid trial."""
        ...


def execute_series(providers: Sequence[TestbedProvider], run_on: Execution, console: Console, runs: Path) -> None:
    """Run on one testbed after the other, then print the comparison of all and write its page below `runs`.

    A run without a valid trial does not end the series unless it is the last. Another error ends it, and the runs
    before it stay, each with its report. If the series needs this machine, and another run has it, nothing begins until
    that run ends, because computing would disturb what it measures.
    """
    if len(providers) > 1 and any(each.takes_machine for each in providers):
        machine_lease.wait_until_free("machine", STATE, print_notice)
    complete: list[Run] = []
    for number, where in enumerate(providers, start=1):
        if len(providers) > 1:
            console.print(f"{number} of {len(providers)}: {where.where['testbed']}", highlight=False)
        try:
            complete.append(run_on(where, is_last=number == len(providers)))
        except UnmeasuredError as error:
            if number == len(providers):
                raise
            print_warning(error.message)
        except RoundaboutError:
            for run in complete:
                console.print(f"complete  {run.path / 'report.html'}", soft_wrap=True, highlight=False)
            raise
    if len(complete) > 1:
        show_comparison(complete, console, runs)


def show_comparison(complete: Sequence[Run], console: Console, runs: Path) -> None:
    """Print the comparison of runs on several testbeds, and write its page."""
    from analysis.reports.testbed_comparison import compare_runs  # noqa: PLC0415 - its import takes a second

    print_comparison(compare_runs(complete), console, runs)


def show_comparison_with_newest(run: Run, console: Console, runs: Path) -> None:
    """Print the comparison of `run` with the newest run of its experiment on each other testbed, and write its page.

    Do nothing if no other testbed has a run, or if `run` is not the one that stands for its testbed.
    """
    from analysis.reports.comparison import CompareError  # noqa: PLC0415 - its import takes a second
    from analysis.reports.testbed_comparison import compare_testbeds  # noqa: PLC0415

    try:
        comparison = compare_testbeds(run.experiment, runs)
    except CompareError:
        return
    if run.id in {each.run for each in comparison.runs}:
        print_comparison(comparison, console, runs)


def print_comparison(comparison: "TestbedComparison", console: Console, runs: Path, page: Path | None = None) -> None:
    """Print a comparison of testbeds, and write its page to `page`, by default below `runs`."""
    from analysis.reports.testbed_comparison import table  # noqa: PLC0415 - its import takes a second
    from analysis.reports.testbed_page import write_page  # noqa: PLC0415

    console.print(table(comparison))
    show_page(console, write_page(comparison, runs, page))
