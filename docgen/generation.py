# SPDX-License-Identifier: Apache-2.0
"""The generated files of docs/, which are committed so that a git host shows them too."""

from collections.abc import Callable, Iterator
from pathlib import Path

from docgen import commands, diagram, experiment_fields, quantities, transports
from roundabout.core.paths import ROOT

DOCS = ROOT / "docs"
FILES: dict[str, Callable[[], str]] = {
    "explanation/architecture.svg": diagram.draw,
    "reference/commands.md": commands.format_page,
    "reference/experiment-fields.md": experiment_fields.format_page,
    "reference/quantities.md": quantities.format_page,
    "reference/transports.md": transports.format_page,
}


def write_all() -> Iterator[Path]:
    """Write the generated files that are not current, and yield their paths."""
    for name, generate in FILES.items():
        path = DOCS / name
        text = generate()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            yield path
