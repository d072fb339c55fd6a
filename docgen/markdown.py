# SPDX-License-Identifier: Apache-2.0
"""Formatting of Markdown that a git host and the site show alike."""

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100  # characters of a line of prose


def notice(source: str) -> str:
    """Return the comment that begins a generated page; `source` names its source in words."""
    return f"<!-- Generated from {source} by `python -m docgen`. Do not edit. -->\n\n"


def code(text: str) -> str:
    """Return `text` as code, or an empty string without text."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return a docstring as one line of a table or list, so that no character is taken for HTML."""
    parts = " ".join(text.split()).split("`")
    # Every second part is code, which Markdown shows as it is.
    return "`".join(
        part if index % 2 else part.replace("<", "&lt;").replace("*", "\\*") for index, part in enumerate(parts)
    )


def prose(text: str) -> str:
    """Return a paragraph of a docstring in lines of at most 100 characters, followed by an empty line."""
    return f"{textwrap.fill(plain(text), WIDTH, break_long_words=False, break_on_hyphens=False)}\n\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, followed by an empty line."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines) + "\n"
