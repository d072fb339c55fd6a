# SPDX-License-Identifier: Apache-2.0
"""Progress of a computation on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from roundabout.terminal.screen import Screen


@contextmanager
def show_part(what: str) -> Iterator[Callable[[float], None]]:
    """Show the finished part, from 0 to 1, of `what`: a bar, or a line for each tenth where that cannot be drawn."""
    console = Screen(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda part: bar.update(task, completed=part)
        return
    said = -1

    def say(part: float) -> None:
        nonlocal said
        if (tenths := int(10 * part)) > said:
            said = tenths
            console.print(f"{what}: {10 * tenths} %", highlight=False)

    yield say
