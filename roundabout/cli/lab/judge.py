# SPDX-License-Identifier: Apache-2.0
"""`roundabout judge`: the congestion controls that experiments can name and their declarations.

Or the judgement of a file's.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundabout.cli.options import Json, Runs
from roundabout.core.errors import UsageError
from roundabout.spec.transports import Declaration, Parameter, registry
from roundabout.spec.transports.sets import Chosen, Figure, ParameterSet, read_set, set_names
from roundabout.terminal.screen import Screen

PARAMETER_COLUMNS = {"bytes/s": "Mbit/s", "2^-24": ""}  # displayed units of parameters, by the program's unit
CHOSEN_BY = {"experiment": "{}", "testbed": "the testbed's, or {}", "line_rate": "the line rate, or {}"}
CHOSEN_BY |= {"network": "the topology's, or {}", "nic": "a NIC's: {}"}


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    program: Annotated[
        Path | None, typer.Argument(metavar="[FILE.bpf.c]", help="Program of the congestion control to judge.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Measure only this scene. May be repeated.")] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option(help="Exit with 3 if this is true: 'jain_8 < 0.9'. May be repeated.")
    ] = None,
    btf: Annotated[list[Path] | None, typer.Option(help="BTF of a further kernel to check. May be repeated.")] = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """List congestion controls with their parameters and counters, or judge one beside cubic, dctcp and dcqcn.

    A judgement needs root and takes ten minutes. It measures throughput, CPU, fairness, marks, losses and jobs.
    """
    if program is None:
        if only or fail_if or btf:
            raise UsageError("found --only, --fail-if or --btf without a file, expected FILE.bpf.c to judge")
        _list(as_json=as_json)
        return
    # These imports take a second, and only this command needs them.
    from roundabout.checks.check import select_parts  # noqa: PLC0415
    from roundabout.checks.judge.figures import SCENES, parse_measured_condition  # noqa: PLC0415
    from roundabout.checks.judge.run import JudgeRequest, judge  # noqa: PLC0415

    wanted = select_parts(only or (), SCENES)
    conditions = [parse_measured_condition(each, wanted) for each in fail_if or ()]
    judge(JudgeRequest(program, wanted, conditions, btf or (), runs), as_json=as_json)


def _list(*, as_json: bool) -> None:
    declared = [found for name in registry.transport_names() if (found := registry.find_declaration(name))]
    if as_json:
        print(json.dumps([_record(each) for each in declared], indent=2, default=str))  # paths
        return
    console = Screen()
    for each in declared:
        console.print(_table(each))
        names = [*(counter.name for counter in each.counters), *(derived.name for derived in each.derived)]
        console.print(f"counters  {', '.join(names)}\n", highlight=False)
        if sets := [read_set(each, name) for name in set_names(each)]:
            console.print(_sets(each, sets))
            console.print("* not printed by the set's source: a guess, whose origin is in its file", highlight=False)
            console.print("+ identified from printed measurements: which, is in its file\n", highlight=False)
    console.print(f"Linux's own, where a kernel has them: {', '.join(registry.KERNELS_OWN)}", highlight=False)


def _record(declared: Declaration) -> dict[str, object]:
    sets = [read_set(declared, name).model_dump(exclude_none=True) for name in set_names(declared)]
    return {**asdict(declared), "sets": sets}


def _table(declared: Declaration) -> Table:
    title = f"{declared.name} (stands for {declared.stands_for})"
    table = Table(title=title, box=None, header_style="bold", pad_edge=False, title_justify="left")
    for column in ("parameter", "unit", "unless given", "range", "meaning"):
        table.add_column(column, no_wrap=column == "parameter", overflow="fold")  # names are there to be typed
    for each in declared.parameters:
        unit = PARAMETER_COLUMNS.get(each.unit, each.unit)
        limits = " or ".join(each.names) or f"{each.least:g} to {each.most:g}"
        table.add_row(
            each.name, unit, CHOSEN_BY[each.chosen_by].format(_format_default(each)), limits, Text(each.meaning)
        )
    return table


def _format_default(parameter: Parameter) -> str:
    return str(parameter.default) if parameter.names else f"{parameter.value:g}"


def _sets(declared: Declaration, sets: Sequence[ParameterSet]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left")
    table.title = f"sets of parameters that were published for {declared.name}"
    table.add_column("set", overflow="fold")
    for each in sets:
        table.add_column(each.name, justify="right", overflow="fold")
    every = [{**each.parameters, **dict(each.ecn)} for each in sets]
    for name in every[0]:
        table.add_row(name, *(_format_value(each[name]) for each in every))
    return table


def _format_value(figure: Chosen | Figure) -> str:
    value = figure.value if isinstance(figure.value, str) else f"{figure.value:.8g}"
    return f"{value}{'*' if figure.guess else '+' if figure.identified else ''}"
