# SPDX-License-Identifier: Apache-2.0
"""Read the texts that people read: comments, messages of errors, cells of notebooks, pages and docstrings."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pygments.lexer import Lexer
from pygments.lexers import BashLexer, CppLexer, DjangoLexer
from pygments.token import Comment

DEFINITIONS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ROOT_ERROR = "RoundaboutError"
# pydantic turns a ValueError of a validator into a message of the experiment's file.
OTHER_ERRORS = {"ValueError"}
HEADER = re.compile(r"SPDX-License-Identifier|^!")
CODE = re.compile(r"`[^`]*`")
FENCE = re.compile(r"^(```|~~~)")
CELL = re.compile(r"^# %%")
SHELL = re.compile(rb"#!.*\b(ba|da)?sh\b")


class Text(NamedTuple):
    """One text of a file: the line on which it begins, and its words without marks of comments."""

    line: int
    words: str


def c_comments(source: str) -> Iterator[Text]:
    """Yield the comments of C, C++ or eBPF; successive `//` lines are one comment."""
    yield from _comments(CppLexer(stripnl=False, ensurenl=False), source)


def shell_comments(source: str) -> Iterator[Text]:
    """Yield the comments of a shell script; successive lines are one comment."""
    yield from _comments(BashLexer(stripnl=False, ensurenl=False), source)


def jinja_comments(source: str) -> Iterator[Text]:
    """Yield the comments of a Jinja template, and those of a shell script that the template writes."""
    yield from _comments(DjangoLexer(stripnl=False, ensurenl=False), source)
    yield from shell_comments(re.sub(r"\{#.*?#\}", lambda found: re.sub(r"[^\n]", " ", found[0]), source, flags=re.S))


def python_comments(source: str) -> Iterator[Text]:
    """Yield the comments of Python; successive lines are one comment."""
    last = Text(0, "")
    end = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or HEADER.search(words := token.string.lstrip("# ")):
            continue
        if last.words and token.start[0] == end + 1 and not token.line[: token.start[1]].strip():
            last = Text(last.line, f"{last.words} {words}")
        else:
            if last.words:
                yield last
            last = Text(token.start[0], words)
        end = token.start[0]
    if last.words:
        yield last


def docstrings(tree: ast.AST) -> Iterator[Text]:
    """Yield the docstrings of a Python module and of its classes and functions."""
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, DEFINITIONS) else None
        if text:
            yield Text(getattr(node, "lineno", 1), text)


def error_classes(trees: Iterable[ast.AST]) -> set[str]:
    """Return the names of RoundaboutError and of each class that derives from it."""
    bases = {
        node.name: {_last_name(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {ROOT_ERROR}
    while more := {name for name, of in bases.items() if of & names} - names:
        names |= more
    return names


def messages(tree: ast.AST, classes: set[str]) -> Iterator[Text]:
    """Yield the strings given to an error of `classes`; a value within an f-string becomes `{}`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in classes | OTHER_ERRORS:
            for argument in [*node.args, *(word.value for word in node.keywords)]:
                yield from _strings(argument)


def notebook_cells(source: str) -> Iterator[Text]:
    """Yield the paragraphs of the markdown cells of a notebook in jupytext's percent format."""
    lines = source.splitlines()
    is_markdown = False
    kept = []
    for line in lines:
        if CELL.match(line):
            is_markdown = "[markdown]" in line
            kept.append("")
        else:
            kept.append(re.sub(r"^# ?", "", line) if is_markdown else "")
    yield from page_paragraphs("\n".join(kept))


def page_paragraphs(source: str) -> Iterator[Text]:
    """Yield the paragraphs, list items, headings and table rows of a markdown page, without its code."""
    paragraph: list[str] = []
    begin = 0
    is_code = False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if FENCE.match(line.strip()):
            is_code = not is_code
        words = "" if is_code or FENCE.match(line.strip()) else CODE.sub("``", line).strip()
        begins = re.match(r"#+ |[-*>] |\d+\. |\| *", words)
        if paragraph and (begins or not words):
            yield Text(begin, " ".join(paragraph))
            paragraph = []
        if words:
            begin = begin if paragraph else number
            paragraph.append(words[begins.end() :] if begins else words)


def comments_reader(file: Path) -> Callable[[str], Iterator[Text]] | None:
    """Return the function that reads the comments of `file`; None if its language has none that are checked."""
    if file.suffix in READERS:
        return READERS[file.suffix]
    if not file.suffix and SHELL.match(file.read_bytes()):
        return shell_comments
    return None


def _comments(lexer: Lexer, source: str) -> Iterator[Text]:
    last = Text(0, "")
    end = column = 0
    for begin, kind, value in lexer.get_tokens_unprocessed(source):
        if kind not in Comment or kind in (Comment.Preproc, Comment.PreprocFile, Comment.Hashbang):
            continue
        words = re.sub(r"^[/*#{!]+<?|[*#}/]+$", "", value.strip()).strip()
        words = re.sub(r"\n[ \t]*(\*|#|//)?[ \t]*", " ", words)
        if HEADER.search(words):
            continue
        between = source[end:begin]
        at = begin - source.rfind("\n", 0, begin)
        if last.words and at == column and not between.strip() and between.count("\n") == 1:
            last = Text(last.line, f"{last.words} {words}")
        else:
            if last.words:
                yield last
            last = Text(source.count("\n", 0, begin) + 1, words)
        end, column = begin + len(value.rstrip("\n")), at
    if last.words:
        yield last


def _strings(node: ast.AST) -> Iterator[Text]:
    if isinstance(node, ast.JoinedStr):
        words = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield Text(node.lineno, words)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield Text(node.lineno, node.value)
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _strings(child)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


READERS = {
    **dict.fromkeys((".c", ".h", ".cpp", ".hpp"), c_comments),
    **dict.fromkeys((".j2", ".html"), jinja_comments),
    ".py": python_comments,
    ".sh": shell_comments,
}
