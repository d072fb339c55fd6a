# SPDX-License-Identifier: Apache-2.0
"""Names in backticks in docstrings, and the names that a docstring may use.

A docstring may name what its module has or imports from the project: identifiers, and words of strings, which are
options, fields and columns. It may also name a command, a file or folder beside its module, and a keyword of Python.
"""

import ast
import builtins
import keyword
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.language.texts import Text

NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*)`")
COMMANDS = "roundabout/cli/"
LANGUAGE = {*dir(builtins), *keyword.kwlist}
# Names of other programs and formats, fields of experiments and records, and parts of names.
FOREIGN = {
    *("display", "migrate", "nohup", "replay", "tcpdump", "transport"),
    *("__sk_common", "all_reduce", "cluster_job_log", "duration", "gpu_milli", "pg_config_info", "skc_net", "sock"),
    *(
        "alone",
        "count_by",
        "ecn",
        "feedback_us",
        "fragments",
        "median",
        "only",
        "predicted",
        "queue_bytes",
        "ring",
        "tree",
    ),
    *("_total", "least_", "most_", "no", "on"),
}


def unknown_names(trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, Text]]:
    """Yield the file and each name in backticks that the docstrings of its module may not use."""
    names = {file: _names(tree) for file, tree in trees.items()}
    by_module = {file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in trees}
    commands = {Path(file).stem.strip("_") for file in trees if file.startswith(COMMANDS)}
    folders = {Path(file).parent for file in trees}
    for file, tree in trees.items():
        imported = (names[by_module[module]] for module in _imports(tree) if module in by_module)
        folder = Path(file).parent
        beside = {Path(other).stem for other in trees if Path(other).parent == folder}
        near = {each.name for each in folders if each.parent in (folder, folder.parent)}
        known = LANGUAGE.union(FOREIGN, names[file], *imported, commands, beside, near)
        for text in _docstrings(tree):
            for found in NAME.finditer(text.words):
                if found[1] not in known:
                    yield file, Text(text.line, found[1])


def _docstrings(tree: ast.AST) -> Iterator[Text]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(node.lineno, node.value.value)


def _names(tree: ast.AST) -> set[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {name for node in ast.walk(tree) if id(node) not in docstrings for name in _names_of(node)}


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.arg | ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.alias):
        yield from (node.asname or "", *node.name.split("."))
    elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from re.findall(r"\w+", node.value)


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
