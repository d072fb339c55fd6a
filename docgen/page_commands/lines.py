# SPDX-License-Identifier: Apache-2.0
"""Command lines of Markdown pages: `roundabout`, `make`, `bootstrap` and `python` in code blocks and in inline code."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^ *(```+|~~~+)(\w*)")
_SHELL = ("", "sh", "bash", "console")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PROGRAM = re.compile(r"(?:\S*/)?(roundabout|rb|make|bootstrap|python3?)$")
_SEPARATORS = ("&&", "||", ";", "|")
_REDIRECTIONS = (">", ">>", "<", "2>")


class CommandLine(NamedTuple):
    """A command of a page: the line on which it begins, its program, its words, and whether it stands in prose.

    A command in prose may leave out arguments, as in "`roundabout judge` lists them".
    """

    line: int
    program: str
    words: tuple[str, ...]
    is_inline: bool


def find_commands(text: str) -> Iterator[CommandLine]:
    """Yield the commands of a page's text in their order."""
    fence = ""
    prose = ""  # of the paragraph so far: inline code may go on in the next line
    began = 1
    command = ""  # of the lines so far that end in a backslash
    begins = 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        found = _FENCE.match(line)
        if found:
            fence = "" if fence else found[2] or "sh"
        elif fence or line.startswith("    "):
            if not fence or fence in _SHELL:
                begins = begins if command else number
                command += line.strip()
                if command.endswith("\\"):
                    command = command[:-1]
                else:
                    yield from _split(command, begins, is_inline=False)
                    command = ""
            continue
        if found or not line.strip() or re.match(r" *(?:[-*|#]|\d+\.) ?", line):
            yield from _find_inline(prose, began)
            prose, began = "", number
        prose += f"{line.strip()}\n" if not found else ""
    yield from _find_inline(prose, began)


def _find_inline(prose: str, began: int) -> Iterator[CommandLine]:
    for found in _INLINE.finditer(prose):
        code = found[1].replace("\n", " ").replace("\\|", "|")
        yield from _split(code, began + prose.count("\n", 0, found.start()), is_inline=True)


def _split(code: str, number: int, *, is_inline: bool) -> Iterator[CommandLine]:
    """Yield the commands of a shell line, without comments, redirections and what sudo and variables add."""
    if not re.match(r"(?:sudo |[A-Z_]+=\S+ )*(?:\S*/)?(?:roundabout|rb|make|bootstrap|python3?)(?: |$)", code):
        return
    without_comment = re.sub(r"(?:^|\s)#.*", "", code)  # first, as it may have an apostrophe
    lexer = shlex.shlex(without_comment, posix=True, punctuation_chars="&;|" if not is_inline else "&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return  # no command: an apostrophe of prose
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            command.append(word)
            continue
        while command and (command[0] == "sudo" or re.fullmatch(r"[A-Z_]+=.*", command[0])):
            command.pop(0)
        if command and (found := _PROGRAM.match(command[0])):
            program = {"rb": "roundabout", "python3": "python"}.get(found[1], found[1])
            yield CommandLine(number, program, tuple(_drop_redirections(command[1:])), is_inline)
        command = []


def _drop_redirections(words: list[str]) -> Iterator[str]:
    skip = False
    for word in words:
        if skip or word in _REDIRECTIONS:
            skip = word in _REDIRECTIONS
        else:
            yield word
