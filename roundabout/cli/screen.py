# SPDX-License-Identifier: Apache-2.0
"""The screen that commands print on."""

from typing import Any

from rich.console import Console


class Screen(Console):
    """A console on which text is text: names, reasons and paths come from files, and may look like rich's markup.

    What shall have a style is a `Text`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
