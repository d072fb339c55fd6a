# SPDX-License-Identifier: Apache-2.0
"""The console that commands print on."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from roundabout.core.errors import in_one_line


class Screen(Console):
    """A rich console that prints strings literally, because names from files may look like rich's markup.

    Styled output must be passed as `rich.text.Text`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render like rich's console, with terminal control characters in the text escaped."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(map(in_one_line, segment.text.split("\n"))), segment.style)


def show_paths(console: Console, report: Path, data: Path) -> None:
    """Print the paths of the report and of the data, each on one line without wrapping."""
    for name, path in (("report", report), ("data", data)):
        console.print(f"{name:<6}  {in_one_line(path)}", soft_wrap=True, highlight=False)


def show_page(console: Console, page: Path) -> None:
    """Print the path of a page on one line without wrapping."""
    console.print(f"page    {in_one_line(page)}", soft_wrap=True, highlight=False)
