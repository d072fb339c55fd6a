# SPDX-License-Identifier: Apache-2.0
"""Tables, page and files of a check."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from analysis.render import page, screen
from analysis.render.tables import TONES, Cell, Column, Table, one_section
from roundabout.checks.check import Check, Verdict
from roundabout.core.verdict_words import INCONCLUSIVE
from roundabout.store.files import make_directory, return_tree_to_caller, write_json, write_text
from roundabout.terminal.screen import show_paths

VERDICT_COLUMNS = (
    Column(kind="names"),
    Column(kind="words"),
    Column("found", kind="words", wraps=True),
    Column("expected", kind="words", wraps=True),
    Column("verdict", kind="words"),
)


def tables(check: Check, *, only_failed: bool = False) -> Iterator[Table]:
    """Yield each part's figures, if it has a table of them, and its verdicts, or only the failed ones."""
    for part, verdicts in check.parts.items():
        title = check.TITLES[part]
        if figures := check.figure_table(part):
            yield figures
            title = ""
        rows = [_row(each) for each in verdicts if each.verdict in ("fail", INCONCLUSIVE) or not only_failed]
        yield Table(
            VERDICT_COLUMNS, one_section(rows), title, empty=f"{check.TITLES[part]}: nothing is beyond its limit."
        )


def render_page(check: Check) -> str:
    """Return the HTML of the result's page."""
    fidelity = check.fidelity
    parts = [
        *([page.fill_template("header", fidelity=fidelity, about=check.title, lead=check.lead)] if fidelity else []),
        page.bold_heading(check.outcome),
        *check.charts(),
        *page.titled_tables(tables(check)),
        *map(page.paragraph, check.notes()),
        page.named_values("What names mean", [(name, f" {about}") for name, about in check.meanings()]),
        page.list_html("Measured in:", check.runs),
        *([page.render_part("fidelity", fidelity=fidelity)] if fidelity else []),
    ]
    return page.render_document(check.title, page.concatenate(parts))


def report(check: Check, folder: Path, console: Console, *, as_json: bool) -> None:
    """Write a check's JSON file and page to `folder`, and show its figures and failures.

    With `as_json` print the JSON, too.
    """
    record, result, html = check.record(), make_directory(folder) / f"{check.RESULT}.json", folder / "report.html"
    write_json(result, record)
    write_text(html, render_page(check))
    return_tree_to_caller(folder)
    for table in tables(check, only_failed=True):
        console.print(screen.table_renderable(table))
    console.print(Text(check.outcome, style="bold"))
    for note in (*check.notes(), *([check.fidelity.stamp] if check.fidelity else [])):
        console.print(Text(note, style="dim"))
    show_paths(console, html, result)
    if as_json:
        json.dump(record, sys.stdout, indent=2)
        print()


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    return (
        Cell(verdict.of),
        Cell(verdict.name),
        Cell(verdict.found),
        Cell(verdict.expected),
        Cell(verdict.verdict or "", tone=TONES[verdict.verdict] if verdict.verdict else None),
    )
