# SPDX-License-Identifier: Apache-2.0
"""`roundabout compare`: compare runs, and check rules about their differences."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.reports import guard, testbed_comparison
from analysis.reports.comparison import compare, table
from roundabout.cli.options import Json, Runs, check_output
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.store import Run
from roundabout.store.files import write_text
from roundabout.terminal.screen import Screen
from roundabout.terminal.series_execution import print_comparison


class RuleViolatedError(RoundaboutError):
    """Error for a violated rule, or for a rule that could not be judged. The exit code is 3."""

    exit_code = 3


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    one: Annotated[str, typer.Argument(metavar="A", help="A run's folder or id, an experiment, or `last`.")],
    others: Annotated[list[str] | None, typer.Argument(metavar="[B...]", help="The runs to compare with A.")] = None,
    testbeds: Annotated[
        bool, typer.Option("--testbeds", help="Compare the newest run of experiment A on each testbed, side by side.")
    ] = False,
    runs: Runs = Path("runs"),
    page: Annotated[
        Path | None, typer.Option(help="File of the page of --testbeds. Default: runs/EXPERIMENT/testbeds.html.")
    ] = None,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Allow the comparison of an emulated run with a real run.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Exit with 3 if this is true for a job, or cannot be judged for any: 'p99 > 5 %', 'median < -3 %'.",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the rules' verdicts to this file as JUnit XML.")] = None,
    as_json: Json = False,
) -> None:
    """Compare the iteration times of runs with those of run A, for each variant and job."""
    if testbeds:
        if others or fail_if or junit:
            raise UsageError("--testbeds: found other runs or rules beside it, expected an experiment's name alone")
        if page:
            check_output("--page", page)
        _compare_testbeds(one, runs, page, as_json=as_json)
        return
    if page:
        raise UsageError("--page: found no --testbeds, expected it: other comparisons have no page")
    if not others:
        raise UsageError("found no run to compare with A, expected one: compare A B", "--testbeds compares testbeds")
    rules = [guard.parse_rule(text) for text in fail_if or ()]
    if junit and not rules:
        raise UsageError("--junit: found no --fail-if, expected one: rules are what passes or fails")
    if junit:
        check_output("--junit", junit)
    first, rest = Run.open(one, runs), [Run.open(name, runs) for name in others]
    comparison = compare(first, *rest, mixed=mixed)
    judged = guard.judge_rules(rules, first, rest)
    if junit:
        write_text(junit, guard.junit(judged))
    if as_json:
        print(json.dumps({**comparison.record(), "rules": [each.model_dump(mode="json") for each in judged]}, indent=2))
    else:
        Screen().print(table(comparison), *([guard.table(judged)] if judged else []))
    _refuse_violations(judged)


def _compare_testbeds(experiment: str, runs: Path, page: Path | None, *, as_json: bool) -> None:
    """Print the comparison and write its page; with `as_json` only print it, as JSON."""
    comparison = testbed_comparison.compare_testbeds(experiment, runs)
    if as_json:
        print(json.dumps(comparison.record(), indent=2))
        return
    print_comparison(comparison, Screen(), runs, page)


def _refuse_violations(judged: list[guard.RuleVerdict]) -> None:
    """Raise RuleViolatedError if a rule is violated, or could be judged nowhere, so that nothing passes unmeasured."""
    found = [f"{each.rule}: {each.cell}, {each.job}: {each.change:+.1%}" for each in guard.failed_rules(judged)]
    reported = {each.rule for each in judged if not each.why}
    untold = {each.rule: f"{each.rule}: judged nowhere: {each.why}" for each in judged if each.rule not in reported}
    if found or untold:
        hint = "run more repetitions or iterations, or compare p90 in place of p99" if untold else None
        raise RuleViolatedError("; ".join([*found, *untold.values()]), hint)
