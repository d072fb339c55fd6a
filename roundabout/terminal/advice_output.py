# SPDX-License-Identifier: Apache-2.0
"""Output of `roundabout advise`, whatever the advice is on."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roundabout.terminal.screen import Screen

if TYPE_CHECKING:
    from analysis.render.tables import Table


def show_advice(
    record: Mapping[str, Any],
    tables: "Sequence[Table]",
    explained: str,
    written: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Print advice as JSON, or as tables with their explanation and what was `written`, by kind; None is left out."""
    from analysis.render import screen  # noqa: PLC0415 - what only this needs takes long to import

    if as_json:
        print(json.dumps(record, indent=2))
        return
    console = Screen()
    for table in tables:
        console.print(screen.table_renderable(table))
    console.print(explained, highlight=False)
    for kind, what in written.items():
        if what:
            console.print(f"{kind}  {what}", soft_wrap=True, highlight=False)


@contextmanager
def show_step() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the step that begins, on stderr if that is a terminal."""
    with Screen(stderr=True).status("") as status:
        yield status.update
