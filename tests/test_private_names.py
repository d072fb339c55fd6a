# SPDX-License-Identifier: Apache-2.0
"""Tests and benchmarks reach no private names: they use what a module, a class or an object makes public."""

import ast
from collections.abc import Iterator

import pytest

from roundabout.core.paths import ROOT
from tests.test_import_cycles import project_files

pytestmark = pytest.mark.unit

PUBLIC = {"_asdict", "_fields", "_make", "_replace", "_exit", "_fields_"}
"""Names that Python documents as public: those of named tuples, `os._exit`, and the fields of ctypes' structures."""

PYTESTS_OWN = {"_pytest", "_setupstate"}
"""What repeating a test needs of pytest, which has no public way for it (quiet.py)."""

OWN_OBJECTS = {"self", "cls"}
SETTERS = {"setattr", "getattr", "hasattr", "delattr", "attrgetter", "patch", "object"}
"""Functions that take an attribute's name as text: Python's, monkeypatch's, and unittest.mock's `patch.object`."""


def is_private(name: str) -> bool:
    """Return True if a part of a dotted name begins with one underscore, or with two and does not end with any."""
    return any(
        part.startswith("_") and part.strip("_") and not part.endswith("__") and part not in PUBLIC | PYTESTS_OWN
        for part in name.split(".")
    )


def is_own(value: ast.expr) -> bool:
    """Return True for `self`, `cls` and `super()`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in OWN_OBJECTS


def named_attributes(node: ast.AST) -> Iterator[str]:
    """Yield the texts that name an attribute: arguments of `setattr` and the like, and pairs of an object and a text.

    Tests list such pairs to replace them in a loop.
    """
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = node.args[:2] if called in SETTERS else []
    elif isinstance(node, ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Name | ast.Attribute):
        texts = node.elts[1:2]
    else:
        return
    yield from (each.value for each in texts if isinstance(each, ast.Constant) and isinstance(each.value, str))


def private_names(source: str) -> list[tuple[int, str]]:
    """Return each private name of another object or module that Python source reaches, with its line."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(each.name for each in node.names)]
        elif isinstance(node, ast.Attribute) and not is_own(node.value):
            names = [node.attr]
        else:
            names = list(named_attributes(node))
        found += [(getattr(node, "lineno", 0), name) for name in names if is_private(name)]
    return found


def test_tests_and_benchmarks_reach_no_private_names():
    files = [path for path in project_files() if path.startswith(("tests/", "benchmarks/")) and path.endswith(".py")]
    assert len(files) > 100
    reached = [
        f"{path}:{line}: {name}: make it public in its package, or test by what is public"
        for path in files
        for line, name in private_names((ROOT / path).read_text())
    ]
    assert reached == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from roundabout.runner.trial.validity_checks import invalid_reasons, _exceeds", "_exceeds"),
        ("from analysis.quantities._registry import Quantity", "analysis.quantities._registry"),
        ("import analysis.quantities._registry", "analysis.quantities._registry"),
        ("checks._exceeds(1)", "_exceeds"),
        ("lease.holder._thread.join()", "_thread"),
        ("journal._write = counted", "_write"),
        ("self.work._runner", "_runner"),
        ("run.__cache", "__cache"),
        ("setattr(run, '_path', 1)", "_path"),
        ("monkeypatch.setattr(journal.Journal, '_save', f)", "_save"),
        ("monkeypatch.setattr('roundabout.testbeds.lab.lab._remove', f)", "roundabout.testbeds.lab.lab._remove"),
        ("patch.object(journal, '_write')", "_write"),
        ("STEPS = ((profile, '_run'), (os, 'execv'))", "_run"),
    ],
)
def test_a_private_name_is_found(source: str, name: str):
    assert private_names(source) == [(1, name)]


@pytest.mark.parametrize(
    "source",
    [
        "self._folder = cls._own + super()._make(1)",
        "os._exit(0)",
        "row._replace(good=True)._asdict()",
        "run.__class__.__name__",
        "from __future__ import annotations",
        "monkeypatch.setenv('_ROUNDABOUT_COMPLETE', 'complete_bash')",
        "CASES = [('_allgather_base', 500), (kind, 'all-gather')]",
        "name.endswith('_total')",
        "for _, value in pairs: pass",
    ],
)
def test_a_public_name_is_no_finding(source: str):
    assert private_names(source) == []
