# SPDX-License-Identifier: Apache-2.0
"""No module imports itself by way of others."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from roundabout.core.paths import ROOT
from tests.tracked_files import project_files

pytestmark = pytest.mark.unit


def imports(path: Path, modules: set[str]) -> set[str]:
    """Return the modules that a file imports anywhere, imports for type checkers included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{each.name}" for each in node.names}
            found |= names & modules or {node.module}
    return found & modules


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one cycle, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other():
    sources = [
        path for path in project_files() if path.startswith(("roundabout/", "analysis/")) and path.endswith(".py")
    ]
    names = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / path for path in sources}
    graph = {name: imports(path, set(names)) - {name} for name, path in names.items()}
    assert sum(map(len, graph.values())) > len(graph)
    assert find_cycle(graph) == []


def test_a_cycle_is_found():
    assert set(find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
