# SPDX-License-Identifier: Apache-2.0
"""Read the names that files of Python, C and C++ give to functions, variables and fields."""

import ast
import re
from collections.abc import Iterator

from pygments.lexers import CppLexer
from pygments.token import Name

from tests.language.texts import DEFINITIONS, Text

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: str) -> str:
    """Return the words of a name in snake case or camel case, separated by spaces."""
    return " ".join(WORD.findall(name))


def python_names(tree: ast.AST) -> Iterator[Text]:
    """Yield the names that Python code defines; names of others, such as a file's `tell`, are only used."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and not isinstance(node, ast.Module):
            yield Text(node.lineno, node.name)
        elif isinstance(node, ast.arg):
            yield Text(node.lineno, node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Text(node.lineno, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Text(node.lineno, node.attr)


def c_names(source: str) -> Iterator[Text]:
    """Yield all names of C, C++ or eBPF code, those of strings and comments excluded."""
    line = 1
    for _, kind, value in CppLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(source):
        if kind in Name:
            yield Text(line, value)
        line += value.count("\n")
