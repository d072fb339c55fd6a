# SPDX-License-Identifier: Apache-2.0
"""`roundabout list`: the catalog of experiments."""

import json
from typing import Any

from rich.table import Table
from rich.text import Text

from roundabout.cli.options import Json
from roundabout.core.memo import cached_answer
from roundabout.core.paths import ROOT
from roundabout.terminal.screen import Screen

FOLDERS = (ROOT / "experiments", ROOT / "transports")


def command(
    as_json: Json = False,
) -> None:
    """List the experiments of the catalog."""
    records = cached_answer("catalogue", FOLDERS, catalog_records)
    if as_json:
        print(json.dumps(records, indent=2))
    else:
        Screen().print(_table(records))


def catalog_records() -> tuple[list[dict[str, Any]], bool]:
    """Return a record of each experiment of the catalog, and True if the records may be cached.

    Records with errors must not be cached, because messages name files relative to the working directory. Neither must
    those of experiments that name files outside the catalog.
    """
    from roundabout.spec.loader import read_catalog  # noqa: PLC0415 - takes longer than all else here

    summaries = read_catalog()
    records = [
        {
            "name": each.name,
            "about": each.about,
            "source": each.source,
            "trials": each.trials,
            "error": each.error.message if each.error else None,
        }
        for each in summaries
    ]
    return records, not any(each.error or each.reads_elsewhere for each in summaries)


def _table(records: list[dict[str, Any]]) -> Table:
    table = Table("experiment", "about", "source", box=None, header_style="bold", pad_edge=False)
    table.add_column("trials", justify="right")
    for each in records:
        if each["error"]:
            table.add_row(each["name"], Text(each["error"], style="red"), "", "-")
        else:
            table.add_row(each["name"], Text(each["about"]), Text(each["source"]), str(each["trials"]))
    return table
