# SPDX-License-Identifier: Apache-2.0
"""Wrap the prose of Markdown pages at 100 characters: `python -m docgen.line_width FILE...`.

Tables, code, headings and comments stay as they are. So does what a page shows: only spaces and line ends change.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from docgen.markdown import WIDTH

_FENCE = re.compile(r"^ *(```+|~~~+)")
_ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)]) +")
# A line that is no prose: a table, a heading, a quotation, HTML, or a link's definition.
_OTHER = re.compile(r"^ *(?:\||#|>|<|\[[^]]+\]:|-{3,}$|={3,}$)")
_UNITS = re.compile(r"(?:`+[^`]*`+|[^\s`])+")
# A word that would begin a list, a heading or a table at the start of a line stays behind the word before it.
_SYNTAX = re.compile(r"(?:[-+*]|#{1,6}|\d+[.)]|[|>=~:<].*|-{3,})$")


def wrap(text: str) -> str:
    """Return a page with its prose in lines of at most WIDTH characters, as far as words allow.

    Paragraphs without a longer line stay as they are.
    """
    lines: list[str] = []
    for block in _blocks(text.splitlines()):
        lines += _wrap_block(block) if _is_too_wide(block) else block
    return "".join(f"{line}\n" for line in lines)


def long_lines(text: str) -> list[int]:
    """Return the numbers of the lines that wrapping would shorten, from 1."""
    found = []
    number = 1
    for block in _blocks(text.splitlines()):
        if _is_too_wide(block) and _wrap_block(block) != block:
            found += [number + index for index, line in enumerate(block) if len(line) > WIDTH]
        number += len(block)
    return found


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines in blocks: paragraphs, items of lists, and all else."""
    block: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(fence[1])), len(lines) - 1)
            yield from filter(None, (block, lines[at : end + 1]))
            block = []
            at = end + 1
            continue
        begins = not block or not line.strip() or _ITEM.match(line) or _is_other(line) or _is_other(block[-1])
        if begins and block:
            yield block
            block = []
        if line.strip():
            block.append(line)
        else:
            yield [line]
        at += 1
    if block:
        yield block


def _is_other(line: str) -> bool:
    return bool(_OTHER.match(line))


def _is_too_wide(block: list[str]) -> bool:
    return _is_prose(block) and max(map(len, block)) > WIDTH


def _is_prose(block: list[str]) -> bool:
    first = block[0]
    is_code = first.startswith("    ") and not _ITEM.match(first)
    has_breaks = any(line.endswith(("  ", "\\")) for line in block)
    return bool(first.strip()) and not (is_code or has_breaks or _is_other(first) or _FENCE.match(first))


def _wrap_block(block: list[str]) -> list[str]:
    item = _ITEM.match(block[0])
    first = item[0] if item else " " * (len(block[0]) - len(block[0].lstrip(" ")))
    text = " ".join([block[0][len(first) :], *block[1:]])
    lines: list[str] = []
    line = first
    for unit in _units(text):
        has_words = len(line) > len(first)
        if has_words and len(line) + 1 + len(unit) > WIDTH:
            lines.append(line)
            line = " " * len(first) + unit
        else:
            line += f" {unit}" if has_words else unit
    return [*lines, line]


def _units(text: str) -> list[str]:
    """Return the words of a text. Code is one word."""
    units: list[str] = []
    for word in _UNITS.findall(text):
        if units and _SYNTAX.match(word):
            units[-1] += f" {word}"
        else:
            units.append(word)
    return units


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(wrap(Path(name).read_text()))
