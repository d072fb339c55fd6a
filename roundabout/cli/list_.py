# SPDX-License-Identifier: Apache-2.0
"""`roundabout list`: the catalogue of experiments."""

import json

from rich.table import Table
from rich.text import Text

from roundabout.cli.options import Json
from roundabout.cli.screen import Screen
from roundabout.spec.load import Summary, catalogue


def command(
    as_json: Json = False,
) -> None:
    """List the experiments that can be run."""
    summaries = catalogue()
    if as_json:
        print(json.dumps([_record(summary) for summary in summaries], indent=2))
    else:
        Screen().print(_table(summaries))


def _record(summary: Summary) -> dict[str, str | int | None]:
    return {**summary._asdict(), "error": summary.error.message if summary.error else None}


def _table(summaries: list[Summary]) -> Table:
    table = Table("experiment", "about", "source", box=None, header_style="bold", pad_edge=False)
    table.add_column("trials", justify="right")
    for summary in summaries:
        if summary.error:
            table.add_row(summary.name, Text(summary.error.message, style="red"), "", "-")
        else:
            table.add_row(summary.name, Text(summary.about), Text(summary.source), str(summary.trials))
    return table
